/// Where a command writes its reply: element by element, an aggregate announced by its size. So a
/// reply becomes a Value, a Lua object or bytes without a tree in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/value.hpp"

namespace sluice::engine {

class Reply {
 public:
  virtual ~Reply() = default;

  virtual void null() = 0;
  virtual void null_array() = 0;  ///< RESP2 tells "*-1" from "$-1"; elsewhere the same as null()
  virtual void integer(std::int64_t value) = 0;
  virtual void number(double value) = 0;           ///< RESP3 double; a bulk string in RESP2
  virtual void boolean(bool value) = 0;            ///< RESP3; 1 or 0 in RESP2
  virtual void simple(std::string_view text) = 0;  ///< "OK"
  virtual void bulk(std::string_view text) = 0;
  virtual void verbatim(std::string_view text) = 0;  ///< RESP3 text; a bulk string in RESP2
  virtual void big_number(std::string_view text) { bulk(text); }  ///< RESP3 digits
  virtual void error(std::string_view text) = 0;  ///< code first, without '-': "ERR no such key"
  virtual void array(std::size_t size) = 0;
  virtual void set(std::size_t size) = 0;   ///< an array in RESP2
  virtual void map(std::size_t pairs) = 0;  ///< an array of twice the size in RESP2
  /// What was replied so far is dropped: something else is replied instead.
  virtual void restart() = 0;

  void ok() { simple("OK"); }
  void count(std::size_t value) { integer(static_cast<std::int64_t>(value)); }
  void bulk_or_null(const std::string* text) { text ? bulk(*text) : null(); }
};

/// A Reply that becomes a Value.
class ValueReply final : public Reply {
 public:
  explicit ValueReply(int protocol = 3) : protocol_(protocol) {}

  /// The reply so far; the object is ready for another one then.
  Value take();
  bool empty() const noexcept { return !complete_; }
  void restart() override { static_cast<void>(take()); }

  void null() override { add({}); }
  void null_array() override { add({}); }
  void integer(std::int64_t value) override { add(Value::integer(value)); }
  void number(double value) override;
  void boolean(bool value) override;
  void simple(std::string_view text) override { add(Value::simple_string(std::string{text})); }
  void bulk(std::string_view text) override { add(Value::bulk_string(std::string{text})); }
  void verbatim(std::string_view text) override;
  void big_number(std::string_view text) override;
  void error(std::string_view text) override { add(Value::error(std::string{text})); }
  void array(std::size_t size) override { open(Value::Type::array, size); }
  void set(std::size_t size) override {
    open(protocol_ == 3 ? Value::Type::set : Value::Type::array, size);
  }
  void map(std::size_t pairs) override {
    open(protocol_ == 3 ? Value::Type::map : Value::Type::array, 2 * pairs);
  }

 private:
  struct Open {  ///< an aggregate that still waits for `left` elements
    Value::Type type;
    std::size_t left;
    Value::Items items;
  };

  void open(Value::Type type, std::size_t size);
  void add(Value value);

  int protocol_;
  std::vector<Open> open_;
  Value result_;
  bool complete_ = false;
};

}  // namespace sluice::engine
