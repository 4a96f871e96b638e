// Lua 5.1 writes a function as: name of the source, two line numbers, four bytes; its instructions; its constants; the
// functions written inside it; and what a debugger wants. A count is an int, a text a size_t with its bytes. Everything is
// in the form of this machine, since nobody else is to read it.
#include "engine/lua/lua_chunk.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::engine {
namespace {

constexpr std::size_t header_size = 12;
constexpr std::uint32_t opcode_bits = 0x3f;
constexpr std::uint32_t op_setglobal = 7;

int append(lua_State*, const void* bytes, std::size_t size, void* text) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), size);
  return 0;
}

class Chunk {
 public:
  explicit Chunk(std::string_view bytes) : left_(bytes) { skip(header_size); }

  /// True: it assigns to a global, or is not what was expected.
  bool function_may_assign() {
    skip_text();
    skip(2 * sizeof(int) + 4);
    bool assigns = instructions_assign();
    skip_constants();
    for (int inner = count(); inner > 0 && good_; --inner)
      assigns = function_may_assign() || assigns;
    skip_debug();
    return assigns || !good_;
  }

 private:
  bool instructions_assign() {
    bool assigns = false;
    for (int i = count(); i > 0 && good_; --i)
      assigns = (take<std::uint32_t>() & opcode_bits) == op_setglobal || assigns;
    return assigns;
  }

  void skip_constants() {
    for (int i = count(); i > 0 && good_; --i) {
      switch (take<char>()) {
        case LUA_TNIL: break;
        case LUA_TBOOLEAN: skip(1); break;
        case LUA_TNUMBER: skip(sizeof(lua_Number)); break;
        case LUA_TSTRING: skip_text(); break;
        default: good_ = false;
      }
    }
  }

  void skip_debug() {
    for (int lines = count(); lines > 0 && good_; --lines) skip(sizeof(int));
    for (int locals = count(); locals > 0 && good_; --locals) {
      skip_text();
      skip(2 * sizeof(int));
    }
    for (int upvalues = count(); upvalues > 0 && good_; --upvalues) skip_text();
  }

  int count() { return take<int>(); }
  void skip_text() { skip(take<std::size_t>()); }
  void skip(std::size_t size) {
    good_ = good_ && size <= left_.size();
    if (good_) left_.remove_prefix(size);
  }
  template <class Number>
  Number take() {
    Number number{};
    if (good_ && sizeof number <= left_.size()) std::memcpy(&number, left_.data(), sizeof number);
    skip(sizeof number);
    return number;
  }

  std::string_view left_;
  bool good_ = true;
};

}  // namespace

bool may_assign_globals(lua_State* lua) {
  std::string bytes;
  if (lua_dump(lua, append, &bytes) != 0) return true;
  return Chunk{bytes}.function_may_assign();
}

}  // namespace sluice::engine
