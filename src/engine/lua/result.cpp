#include "engine/lua/result.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sluice::engine {

namespace {

constexpr int deepest = 512;                    // a table that holds itself goes on for ever
constexpr std::size_t most_values = 1UL << 24;  // and one that holds itself twice grows without end

/// As a C cast on x86-64, where Redis runs: what does not fit is the smallest integer.
std::int64_t truncated(double number) noexcept {
  return number >= -0x1p63 && number < 0x1p63 ? static_cast<std::int64_t>(number)
                                              : std::numeric_limits<std::int64_t>::min();
}

class Result {
 public:
  Result(lua_State* lua, Reply& reply, int protocol)
      : lua_(lua), reply_(reply), resp3_(protocol == 3) {}

  /// Replies the value at the top and pops it.
  void value(int depth) {
    const int at = lua_gettop(lua_);
    switch (lua_type(lua_, at)) {
      case LUA_TSTRING: reply_.bulk(text(-1)); break;
      case LUA_TNUMBER: reply_.integer(truncated(lua_tonumber(lua_, -1))); break;
      case LUA_TBOOLEAN: boolean(lua_toboolean(lua_, -1) != 0); break;
      case LUA_TTABLE: table(depth); break;
      default: reply_.null();
    }
    lua_settop(lua_, at - 1);
  }

 private:
  std::string_view text(int at) {
    std::size_t size = 0;
    const char* bytes = lua_tolstring(lua_, at, &size);
    return {bytes, size};
  }

  void boolean(bool value) {
    if (resp3_) return reply_.boolean(value);
    value ? reply_.integer(1) : reply_.null();
  }

  /// Pushes the field if it is of that type.
  bool has(const char* field, int type) {
    lua_pushstring(lua_, field);
    lua_rawget(lua_, -2);
    if (lua_type(lua_, -1) == type) return true;
    lua_pop(lua_, 1);
    return false;
  }

  void table(int depth) {
    if (depth >= deepest || ++values_ > most_values || !lua_checkstack(lua_, 8))
      return reply_.error("ERR reached lua stack limit");
    if (has("err", LUA_TSTRING)) return reply_.error(one_line(text(-1)));
    if (has("ok", LUA_TSTRING)) return reply_.simple(one_line(text(-1)));
    if (has("double", LUA_TNUMBER)) return reply_.number(lua_tonumber(lua_, -1));
    if (has("map", LUA_TTABLE)) return map(depth);
    if (has("set", LUA_TTABLE)) return set(depth);
    if (has("big_number", LUA_TSTRING)) return reply_.big_number(one_line(text(-1)));
    if (has("verbatim_string", LUA_TTABLE)) {
      if (has("format", LUA_TSTRING)) {
        lua_pop(lua_, 1);
        if (has("string", LUA_TSTRING)) return reply_.verbatim(text(-1));
      }
      lua_pop(lua_, 1);
    }
    array(depth);
  }

  void array(int depth) {
    int size = 0;
    for (bool more = true; more; size += more ? 1 : 0) {
      lua_rawgeti(lua_, -1, size + 1);
      more = !lua_isnil(lua_, -1);
      lua_pop(lua_, 1);
    }
    reply_.array(static_cast<std::size_t>(size));
    for (int i = 1; i <= size; ++i) {
      lua_rawgeti(lua_, -1, i);
      value(depth + 1);
    }
  }

  std::size_t count() {
    std::size_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) ++count;
    return count;
  }

  void map(int depth) {
    reply_.map(count());
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0;) {
      lua_pushvalue(lua_, -2);
      value(depth + 1);
      value(depth + 1);
    }
  }

  void set(int depth) {
    reply_.set(count());
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0;) {
      lua_pop(lua_, 1);
      lua_pushvalue(lua_, -1);
      value(depth + 1);
    }
  }

  lua_State* lua_;
  Reply& reply_;
  bool resp3_;
  std::size_t values_ = 0;
};

}  // namespace

std::string one_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  std::string line{text};
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

void reply_result(lua_State* lua, Reply& reply, int protocol) {
  Result{lua, reply, protocol}.value(0);
}

}  // namespace sluice::engine
