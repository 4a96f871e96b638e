/// A Reply that becomes a Value.
#pragma once

#include <vector>

#include "engine/core/reply.hpp"
#include "sluice/value.hpp"

namespace sluice::engine {

class ValueReply final : public Reply {
 public:
  explicit ValueReply(int protocol = 3) : protocol_(protocol) {}

  /// The reply so far; the object is ready for another one then.
  Value take();
  bool empty() const noexcept { return !complete_; }

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
