/// The library "bit": operations on 32-bit integers, as in Mike Pall's Lua BitOp.
#include <bit>
#include <cstdint>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {
namespace {

std::uint32_t bits_at(lua_State* lua, int index) {
  // Adding 1.5 * 2^52 leaves the integer, modulo 2^32 and rounded to even, in the low bits of the
  // mantissa.
  const double shifted = luaL_checknumber(lua, index) + 6755399441055744.0;
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(shifted));
}

int push(lua_State* lua, std::uint32_t bits) {
  lua_pushnumber(lua, static_cast<std::int32_t>(bits));
  return 1;
}

int tobit(lua_State* lua) { return push(lua, bits_at(lua, 1)); }
int bnot(lua_State* lua) { return push(lua, ~bits_at(lua, 1)); }
int bswap(lua_State* lua) { return push(lua, __builtin_bswap32(bits_at(lua, 1))); }

using Fold = std::uint32_t (*)(std::uint32_t, std::uint32_t);

template <Fold fold>
int folded(lua_State* lua) {
  std::uint32_t bits = bits_at(lua, 1);
  for (int i = lua_gettop(lua); i > 1; --i) bits = fold(bits, bits_at(lua, i));
  return push(lua, bits);
}

/// `shift` gets a count of 0 to 31.
template <Fold shift>
int shifted(lua_State* lua) {
  const std::uint32_t bits = bits_at(lua, 1);
  return push(lua, shift(bits, bits_at(lua, 2) & 31U));
}

constexpr Fold band = [](std::uint32_t a, std::uint32_t b) { return a & b; };
constexpr Fold bor = [](std::uint32_t a, std::uint32_t b) { return a | b; };
constexpr Fold bxor = [](std::uint32_t a, std::uint32_t b) { return a ^ b; };
constexpr Fold lshift = [](std::uint32_t a, std::uint32_t n) { return a << n; };
constexpr Fold rshift = [](std::uint32_t a, std::uint32_t n) { return a >> n; };
constexpr Fold arshift = [](std::uint32_t a, std::uint32_t n) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a) >> n);
};
constexpr Fold rol = [](std::uint32_t a, std::uint32_t n) {
  return std::rotl(a, static_cast<int>(n));
};
constexpr Fold ror = [](std::uint32_t a, std::uint32_t n) {
  return std::rotr(a, static_cast<int>(n));
};

/// tohex(x [, n]): the n last hex digits; upper case where n is negative.
int tohex(lua_State* lua) {
  std::uint32_t bits = bits_at(lua, 1);
  auto digits = lua_isnoneornil(lua, 2) ? 8 : static_cast<std::int32_t>(bits_at(lua, 2));
  const char* alphabet = digits < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
  if (digits < -8 || digits > 8) digits = 8;
  if (digits < 0) digits = -digits;

  char text[8];
  for (int i = digits; --i >= 0; bits >>= 4) text[i] = alphabet[bits & 15U];
  lua_pushlstring(lua, text, static_cast<std::size_t>(digits));
  return 1;
}

constexpr luaL_Reg functions[] = {
    {"tobit", tobit},
    {"tohex", tohex},
    {"bnot", bnot},
    {"bswap", bswap},
    {"band", folded<band>},
    {"bor", folded<bor>},
    {"bxor", folded<bxor>},
    {"lshift", shifted<lshift>},
    {"rshift", shifted<rshift>},
    {"arshift", shifted<arshift>},
    {"rol", shifted<rol>},
    {"ror", shifted<ror>},
    {nullptr, nullptr},
};

}  // namespace

void push_bit_library(lua_State* lua) {
  lua_newtable(lua);
  add_functions(lua, functions);
}

}  // namespace sluice::engine
