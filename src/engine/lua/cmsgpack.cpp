// The library "cmsgpack": MessagePack as in lua-cmsgpack 0.4.0 (no bin, ext and timestamp types).
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"

namespace sluice::engine {
namespace {

constexpr int deepest_written = 16;  // deeper tables become nil, as in the original
constexpr int deepest_read = 1000;   // the reader is recursive: what a thread's stack surely holds
constexpr std::size_t longest = 128UL << 20;

class Packer {
 public:
  explicit Packer(lua_State* lua) : lua_(lua) {}
  std::string_view bytes() const noexcept { return bytes_; }

  /// Appends the value at the top of the stack.
  void value(int depth) {
    if (++values_ % values_a_charge == 0) spend_steps(lua_, values_a_charge * 4);
    if (bytes_.size() > longest) luaL_error(lua_, "cmsgpack: more than %d bytes", int{longest});
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING: return string();
      case LUA_TNUMBER: return number(lua_tonumber(lua_, -1));
      case LUA_TBOOLEAN: return byte(lua_toboolean(lua_, -1) ? 0xC3 : 0xC2);
      case LUA_TTABLE:
        if (depth < deepest_written) return table(depth);
        [[fallthrough]];
      default: return byte(0xC0);
    }
  }

 private:
  void byte(unsigned value) { bytes_ += static_cast<char>(value); }

  template <std::unsigned_integral T>
  void tagged(unsigned tag, T value) {
    byte(tag);
    for (int shift = 8 * (int{sizeof value} - 1); shift >= 0; shift -= 8)
      byte(static_cast<unsigned>(value >> shift) & 0xFF);
  }

  void integer(std::int64_t n) {
    const auto bits = static_cast<std::uint64_t>(n);
    if (n >= 0) {
      if (n <= 0x7F) return byte(static_cast<unsigned>(n));
      if (n <= 0xFF) return tagged(0xCC, static_cast<std::uint8_t>(bits));
      if (n <= 0xFFFF) return tagged(0xCD, static_cast<std::uint16_t>(bits));
      if (n <= 0xFFFFFFFFLL) return tagged(0xCE, static_cast<std::uint32_t>(bits));
      return tagged(0xCF, bits);
    }
    if (n >= -32) return byte(static_cast<std::uint8_t>(bits));
    if (n >= INT8_MIN) return tagged(0xD0, static_cast<std::uint8_t>(bits));
    if (n >= INT16_MIN) return tagged(0xD1, static_cast<std::uint16_t>(bits));
    if (n >= INT32_MIN) return tagged(0xD2, static_cast<std::uint32_t>(bits));
    tagged(0xD3, bits);
  }

  void number(double n) {
    if (n >= -0x1p63 && n < 0x1p63 && n == std::trunc(n))
      return integer(static_cast<std::int64_t>(n));
    const auto narrow = static_cast<float>(n);
    if (static_cast<double>(narrow) == n) return tagged(0xCA, std::bit_cast<std::uint32_t>(narrow));
    tagged(0xCB, std::bit_cast<std::uint64_t>(n));
  }

  /// A length: in one byte with `fixed` below `fixed_limit`, else behind the tag for 16 or 32 bits.
  void length(std::size_t size, unsigned fixed, std::size_t fixed_limit, unsigned tag16) {
    if (size < fixed_limit) return byte(fixed | static_cast<unsigned>(size));
    if (size <= 0xFFFF) return tagged(tag16, static_cast<std::uint16_t>(size));
    tagged(tag16 + 1, static_cast<std::uint32_t>(size));
  }

  void string() {
    const auto text = text_at(lua_, -1);
    if (text.size() >= 32 && text.size() <= 0xFF) {
      tagged(0xD9, static_cast<std::uint8_t>(text.size()));
    } else {
      length(text.size(), 0xA0, 32, 0xDA);
    }
    bytes_ += text;
  }

  /// An array: the keys are 1 to n and nothing else.
  bool is_array(std::size_t& count) {
    double largest = 0;
    bool integers = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1), ++count) {
      const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
      integers = integers && key >= 1 && key == std::trunc(key);
      largest = std::max(largest, key);
    }
    return integers && largest == static_cast<double>(count);
  }

  void table(int depth) {
    luaL_checkstack(lua_, 4, "in function mp_encode_lua_table");
    std::size_t count = 0;
    if (is_array(count)) {
      length(count, 0x90, 16, 0xDC);
      for (std::size_t i = 1; i <= count; ++i) {
        lua_rawgeti(lua_, -1, static_cast<int>(i));
        value(depth + 1);
        lua_pop(lua_, 1);
      }
      return;
    }
    length(count, 0x80, 16, 0xDE);
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      lua_pushvalue(lua_, -2);
      value(depth + 1);
      lua_pop(lua_, 1);
      value(depth + 1);
    }
  }

  static constexpr std::size_t values_a_charge = 100;

  lua_State* lua_;
  ScriptString bytes_{ScriptAllocator<char>{lua_}};
  std::size_t values_ = 0;
};

class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes) : lua_(lua), rest_(bytes) {}

  bool done() const noexcept { return rest_.empty(); }
  std::size_t left() const noexcept { return rest_.size(); }

  /// Pushes the next value.
  void value(int depth = 0) {
    if (++values_ % values_a_charge == 0) spend_steps(lua_, values_a_charge * 4);
    const auto tag = number<std::uint8_t>();
    if (tag < 0x80) return lua_pushnumber(lua_, tag);
    if (tag >= 0xE0) return lua_pushnumber(lua_, static_cast<std::int8_t>(tag));
    if (tag < 0x90) return map(tag & 0x0FU, depth);
    if (tag < 0xA0) return array(tag & 0x0FU, depth);
    if (tag < 0xC0) return string(tag & 0x1FU);
    switch (tag) {
      case 0xC0: return lua_pushnil(lua_);
      case 0xC2: return lua_pushboolean(lua_, 0);
      case 0xC3: return lua_pushboolean(lua_, 1);
      case 0xCA: return lua_pushnumber(lua_, std::bit_cast<float>(number<std::uint32_t>()));
      case 0xCB: return lua_pushnumber(lua_, std::bit_cast<double>(number<std::uint64_t>()));
      case 0xCC: return integer<std::uint8_t>();
      case 0xCD: return integer<std::uint16_t>();
      case 0xCE: return integer<std::uint32_t>();
      case 0xCF: return integer<std::uint64_t>();
      case 0xD0: return integer<std::int8_t>();
      case 0xD1: return integer<std::int16_t>();
      case 0xD2: return integer<std::int32_t>();
      case 0xD3: return integer<std::int64_t>();
      case 0xD9: return string(number<std::uint8_t>());
      case 0xDA: return string(number<std::uint16_t>());
      case 0xDB: return string(number<std::uint32_t>());
      case 0xDC: return array(number<std::uint16_t>(), depth);
      case 0xDD: return array(number<std::uint32_t>(), depth);
      case 0xDE: return map(number<std::uint16_t>(), depth);
      case 0xDF: return map(number<std::uint32_t>(), depth);
      default: luaL_error(lua_, "Bad data format in input.");
    }
  }

 private:
  std::string_view take(std::size_t size) {
    if (rest_.size() < size) luaL_error(lua_, "Missing bytes in input.");
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  template <std::unsigned_integral T>
  T number() {
    std::uint64_t value = 0;
    for (const char c : take(sizeof(T))) value = (value << 8) | static_cast<unsigned char>(c);
    return static_cast<T>(value);
  }

  template <std::integral T>
  void integer() {
    lua_pushnumber(lua_, static_cast<double>(static_cast<T>(number<std::make_unsigned_t<T>>())));
  }

  void string(std::size_t size) { push_text(lua_, take(size)); }

  void descend(int depth) {
    if (depth >= deepest_read) luaL_error(lua_, "cmsgpack: nested more than %d deep", deepest_read);
    luaL_checkstack(lua_, 4, "in function mp_decode_to_lua_type");
    lua_newtable(lua_);
  }

  void array(std::size_t size, int depth) {
    descend(depth);
    for (std::size_t i = 1; i <= size; ++i) {
      value(depth + 1);
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }

  void map(std::size_t size, int depth) {
    descend(depth);
    for (std::size_t i = 0; i < size; ++i) {
      value(depth + 1);
      value(depth + 1);
      lua_settable(lua_, -3);
    }
  }

  static constexpr std::size_t values_a_charge = 100;

  lua_State* lua_;
  std::string_view rest_;
  std::size_t values_ = 0;
};

int pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  luaL_checkstack(lua, 1, "Too many arguments for MessagePack pack.");
  Packer packer(lua);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    packer.value(0);
    lua_pop(lua, 1);
  }
  return push_text(lua, packer.bytes());
}

/// Pushes at most `limit` values (0: all) from `offset` on; with a limit, first the offset of the
/// next, or -1.
int unpack_from(lua_State* lua, int limit, int offset) {
  const auto bytes = checked_text(lua, 1);
  const int length = static_cast<int>(bytes.size());
  if (offset < 0 || limit < 0)
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.", offset,
                      length);
  if (offset > length)
    return luaL_error(lua, "Start offset %d greater than input length %d.", offset, length);

  Unpacker unpacker(lua, bytes.substr(static_cast<std::size_t>(offset)));
  int count = 0;
  for (; (limit == 0 || count < limit) && !unpacker.done(); ++count) {
    luaL_checkstack(lua, 1, "in function mp_unpack_full");
    unpacker.value();
  }
  if (limit == 0) return count;
  luaL_checkstack(lua, 1, "in function mp_unpack_full");
  lua_pushnumber(lua, unpacker.done() ? -1 : static_cast<double>(bytes.size() - unpacker.left()));
  lua_insert(lua, -(count + 1));
  return count + 1;
}

int unpack(lua_State* lua) { return unpack_from(lua, 0, 0); }
int unpack_one(lua_State* lua) {
  return unpack_from(lua, 1, static_cast<int>(luaL_optinteger(lua, 2, 0)));
}
int unpack_limit(lua_State* lua) {
  const int limit = static_cast<int>(luaL_checkinteger(lua, 2));
  return unpack_from(lua, limit, static_cast<int>(luaL_optinteger(lua, 3, 0)));
}

constexpr luaL_Reg cmsgpack_functions[] = {
    {"pack", pack},
    {"unpack", unpack},
    {"unpack_one", unpack_one},
    {"unpack_limit", unpack_limit},
    {nullptr, nullptr},
};

}  // namespace

void push_cmsgpack_library(lua_State* lua) {
  lua_newtable(lua);
  add_functions(lua, cmsgpack_functions);
  set_text(lua, "_NAME", "cmsgpack");
  set_text(lua, "_VERSION", "lua-cmsgpack 0.4.0");
  set_text(lua, "_DESCRIPTION", "MessagePack C implementation for Lua");
}

}  // namespace sluice::engine
