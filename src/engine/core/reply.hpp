/// Where a command of the engine writes its reply: element by element, an aggregate announced by
/// its size. So a reply becomes a Value, a Lua object or bytes without a tree in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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
  virtual void big_number(std::string_view text) {
    bulk(text);
  }                                               ///< RESP3 digits; a bulk string in RESP2
  virtual void error(std::string_view text) = 0;  ///< code first, without '-': "ERR no such key"
  virtual void array(std::size_t size) = 0;
  virtual void set(std::size_t size) = 0;   ///< an array in RESP2
  virtual void map(std::size_t pairs) = 0;  ///< an array of twice the size in RESP2

  void ok() { simple("OK"); }
};

}  // namespace sluice::engine
