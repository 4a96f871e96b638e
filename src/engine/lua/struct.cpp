// The library "struct": Lua values to bytes and back by a format, as in Roberto Ierusalimschy's
// struct 0.2.
//
//   < > byte order    ! alignment    x padding    space: nothing
//   b B h H l L T i I integers (i and I may name their size)    f d floats
//   s text up to a zero    cN N bytes; c0: as many as the value before says, packing the whole text
#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {
namespace {

constexpr int max_integer = 32;
constexpr std::size_t max_alignment = 8;

/// Reads a format from left to right, keeping byte order and alignment.
class Format {
 public:
  explicit Format(lua_State* lua) : lua_(lua), rest_(checked_text(lua, 1)) {}

  struct Option {
    char kind = 0;
    std::size_t size = 0;     ///< 0 for s, c0 and what only steers
    std::size_t padding = 0;  ///< bytes to leave out before it
  };

  bool done() const noexcept { return rest_.empty() || rest_.front() == '\0'; }
  bool little() const noexcept { return little_; }

  /// The next option for data that begins `offset` bytes into the whole; byte order and alignment
  /// are obeyed here.
  Option next(std::size_t offset) {
    Option option;
    option.kind = take();
    option.size = size_of(option.kind);
    if (option.size > 0 && option.kind != 'c') {
      const std::size_t unit = std::min(option.size, alignment_);
      option.padding = (unit - (offset & (unit - 1))) & (unit - 1);
    }
    if (is_control(option.kind)) control(option.kind);
    return option;
  }

 private:
  static bool is_control(char kind) noexcept {
    return kind == ' ' || kind == '<' || kind == '>' || kind == '!';
  }

  char take() noexcept {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool at_digit() const noexcept {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }

  int number(int fallback) {
    if (!at_digit()) return fallback;
    int value = 0;
    while (at_digit()) {
      const int digit = take() - '0';
      if (value > (INT_MAX - digit) / 10) luaL_error(lua_, "integral size overflow");
      value = value * 10 + digit;
    }
    return value;
  }

  std::size_t integer_size() {
    const int size = number(sizeof(int));
    if (size > max_integer)
      luaL_error(lua_, "integral size %d is larger than limit of %d", size, max_integer);
    return static_cast<std::size_t>(size);
  }

  std::size_t size_of(char kind) {
    switch (kind) {
      case 'b':
      case 'B':
      case 'x': return 1;
      case 'h':
      case 'H': return sizeof(short);
      case 'l':
      case 'L': return sizeof(long);
      case 'T': return sizeof(std::size_t);
      case 'f': return sizeof(float);
      case 'd': return sizeof(double);
      case 'c': return static_cast<std::size_t>(number(1));
      case 'i':
      case 'I': return integer_size();
      case 's':
      case ' ':
      case '<':
      case '>':
      case '!': return 0;
      default:
        luaL_argerror(lua_, 1, lua_pushfstring(lua_, "invalid format option '%c'", kind));
        return 0;
    }
  }

  void control(char kind) {
    if (kind == '<') little_ = true;
    if (kind == '>') little_ = false;
    if (kind != '!') return;
    const int wanted = number(static_cast<int>(max_alignment));
    if (wanted <= 0 || !std::has_single_bit(static_cast<unsigned>(wanted)))
      luaL_error(lua_, "alignment %d is not a power of 2", wanted);
    alignment_ = static_cast<std::size_t>(wanted);
  }

  lua_State* lua_;
  std::string_view rest_;
  bool little_ = std::endian::native == std::endian::little;
  std::size_t alignment_ = 1;
};

bool is_integer(char kind) noexcept {
  return std::string_view("bBhHlLTiI").find(kind) != std::string_view::npos;
}
bool is_signed(char kind) noexcept { return kind >= 'a'; }

/// A Lua number as 64 bits: modulo 2^64 where it is an integer of that size, the nearest bound
/// where it is not.
std::uint64_t to_bits(double number) noexcept {
  if (number < 0)
    return number <= -0x1p63 ? 1ULL << 63
                             : static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
  return number < 0x1p64 ? static_cast<std::uint64_t>(number) : (number != number ? 0 : ~0ULL);
}

void add_bytes(luaL_Buffer& out, const char* bytes, std::size_t size, bool reversed) {
  char ordered[max_integer];
  for (std::size_t i = 0; i < size; ++i) ordered[i] = bytes[reversed ? size - 1 - i : i];
  luaL_addlstring(&out, ordered, size);
}

void add_integer(luaL_Buffer& out, std::uint64_t bits, std::size_t size, bool little) {
  char bytes[max_integer] = {};
  for (std::size_t i = 0; i < size && i < 8; ++i) bytes[i] = static_cast<char>(bits >> (8 * i));
  add_bytes(out, bytes, size, !little);
}

template <class Float>
void add_float(luaL_Buffer& out, double number, bool little) {
  const auto value = static_cast<Float>(number);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  add_bytes(out, bytes, sizeof value, little != (std::endian::native == std::endian::little));
}

void add_text(lua_State* lua, luaL_Buffer& out, int argument, const Format::Option& option) {
  const auto text = checked_text(lua, argument);
  const std::size_t size = option.kind == 's' || option.size == 0 ? text.size() : option.size;
  luaL_argcheck(lua, text.size() >= size, argument + 1,
                "string too short");  // counted as the original counts
  luaL_addlstring(&out, text.data(), size);
  if (option.kind == 's') luaL_addchar(&out, '\0');
}

int pack(lua_State* lua) {
  Format format(lua);
  lua_pushnil(lua);  // so that a missing argument is nil, as the original words it
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  std::size_t total = 0;
  int argument = 2;
  const auto missing = lua_gettop(lua);
  while (!format.done()) {
    const auto option = format.next(total);
    total += option.padding + option.size;
    for (std::size_t i = 0; i < option.padding; ++i) luaL_addchar(&out, '\0');
    const int at = std::min(argument, missing);
    if (is_integer(option.kind)) {
      add_integer(out, to_bits(luaL_checknumber(lua, at)), option.size, format.little());
    } else if (option.kind == 'f') {
      add_float<float>(out, luaL_checknumber(lua, at), format.little());
    } else if (option.kind == 'd') {
      add_float<double>(out, luaL_checknumber(lua, at), format.little());
    } else if (option.kind == 's' || option.kind == 'c') {
      const bool whole = option.size == 0;
      add_text(lua, out, at, option);
      if (whole) total += lua_objlen(lua, at) + (option.kind == 's' ? 1 : 0);
    } else {
      if (option.kind == 'x') luaL_addchar(&out, '\0');
      continue;
    }
    ++argument;
  }
  luaL_pushresult(&out);
  return 1;
}

double integer_of(const char* bytes, const Format::Option& option, bool little) {
  const std::size_t size =
      std::min<std::size_t>(option.size, 8);  // of a longer one, the low 64 bits
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t place = little ? size - 1 - i : option.size - size + i;
    bits = (bits << 8) | static_cast<unsigned char>(bytes[place]);
  }
  if (!is_signed(option.kind)) return static_cast<double>(bits);
  const auto unused = static_cast<int>(64 - 8 * size);
  return size == 0 ? 0 : static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

template <class Float>
double float_of(const char* bytes, bool little) {
  char ordered[sizeof(Float)];
  std::memcpy(ordered, bytes, sizeof ordered);
  if (little != (std::endian::native == std::endian::little))
    std::reverse(ordered, ordered + sizeof ordered);
  Float value;
  std::memcpy(&value, ordered, sizeof value);
  return value;
}

/// The size of a c0: the number that was unpacked last, which it replaces.
std::size_t size_before(lua_State* lua, int results) {
  if (results == 0 || !lua_isnumber(lua, -1)) luaL_error(lua, "format 'c0' needs a previous size");
  const double size = lua_tonumber(lua, -1);
  lua_pop(lua, 1);
  return size >= 0 && size < 0x1p53 ? static_cast<std::size_t>(size) : ~std::size_t{0};
}

int unpack(lua_State* lua) {
  Format format(lua);
  std::size_t length = 0;
  const char* data = luaL_checklstring(lua, 2, &length);
  const auto first = static_cast<std::size_t>(luaL_optinteger(lua, 3, 1));
  luaL_argcheck(lua, first > 0, 3, "offset must be 1 or greater");
  std::size_t at = first - 1;
  const auto require = [&](std::size_t size) {
    luaL_argcheck(lua, size <= length && at <= length - size, 2, "data string too short");
  };

  int results = 0;
  while (!format.done()) {
    auto option = format.next(at);
    at += option.padding;
    require(option.size);
    luaL_checkstack(lua, 2, "too many results");
    if (is_integer(option.kind)) {
      lua_pushnumber(lua, integer_of(data + at, option, format.little()));
    } else if (option.kind == 'f') {
      lua_pushnumber(lua, float_of<float>(data + at, format.little()));
    } else if (option.kind == 'd') {
      lua_pushnumber(lua, float_of<double>(data + at, format.little()));
    } else if (option.kind == 'c') {
      if (option.size == 0) {
        option.size = size_before(lua, results--);
        require(option.size);
      }
      lua_pushlstring(lua, data + at, option.size);
    } else if (option.kind == 's') {
      const void* end = at < length ? std::memchr(data + at, '\0', length - at) : nullptr;
      if (end == nullptr) return luaL_error(lua, "unfinished string in data");
      option.size = static_cast<std::size_t>(static_cast<const char*>(end) - (data + at)) + 1;
      lua_pushlstring(lua, data + at, option.size - 1);
    } else {
      at += option.size;
      continue;
    }
    at += option.size;
    ++results;
  }
  lua_pushnumber(lua, static_cast<double>(at + 1));
  return results + 1;
}

int size(lua_State* lua) {
  Format format(lua);
  std::size_t total = 0;
  while (!format.done()) {
    const auto option = format.next(total);
    total += option.padding + option.size;
    if (option.kind == 's') luaL_argerror(lua, 1, "option 's' has no fixed size");
    if (option.kind == 'c' && option.size == 0)
      luaL_argerror(lua, 1, "option 'c0' has no fixed size");
  }
  lua_pushnumber(lua, static_cast<double>(total));
  return 1;
}

constexpr luaL_Reg functions[] = {
    {"pack", pack},
    {"unpack", unpack},
    {"size", size},
    {nullptr, nullptr},
};

}  // namespace

void push_struct_library(lua_State* lua) {
  lua_newtable(lua);
  add_functions(lua, functions);
}

}  // namespace sluice::engine
