#include "engine/lua/reply.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/lua/libraries.hpp"
#include "engine/types/text.hpp"

namespace sluice::engine {

void LuaReply::null() {
  resp3_ ? lua_pushnil(lua_) : lua_pushboolean(lua_, 0);
  done();
}

void LuaReply::integer(std::int64_t value) {
  lua_pushnumber(lua_, static_cast<double>(value));
  done();
}

void LuaReply::number(double value) {
  if (!resp3_) return bulk(DoubleText{value}.view());
  lua_createtable(lua_, 0, 1);
  lua_pushnumber(lua_, value);
  lua_setfield(lua_, -2, "double");
  done();
}

void LuaReply::boolean(bool value) {
  resp3_ ? lua_pushboolean(lua_, value) : lua_pushnumber(lua_, value ? 1 : 0);
  done();
}

void LuaReply::simple(std::string_view text) {
  push_table_with(lua_, "ok", text);
  done();
}

void LuaReply::bulk(std::string_view text) {
  push_text(lua_, text);
  done();
}

void LuaReply::verbatim(std::string_view text) {
  if (!resp3_) return bulk(text);
  lua_createtable(lua_, 0, 1);
  push_table_with(lua_, "string", text);
  set_text(lua_, "format", "txt");
  lua_setfield(lua_, -2, "verbatim_string");
  done();
}

void LuaReply::error(std::string_view text) {
  error_ = depth_ == 0;
  push_error(lua_, text);
  done();
}

void LuaReply::open(Kind kind, std::size_t size) {
  luaL_checkstack(lua_, 8, "a reply that nests too deeply");
  if (depth_ == open_.size())
    luaL_error(lua_, "a reply nests more than %d deep", static_cast<int>(depth_));
  if (kind != Kind::array) lua_createtable(lua_, 0, 1);
  const int slots = static_cast<int>(std::min<std::size_t>(size, 1 << 20));
  kind == Kind::array ? lua_createtable(lua_, slots, 0) : lua_createtable(lua_, 0, slots);
  if (size > 0) {
    open_[depth_++] = {kind, size, 0};
    return;
  }
  close(kind);
  done();
}

void LuaReply::close(Kind kind) {
  if (kind != Kind::array) lua_setfield(lua_, -2, kind == Kind::set ? "set" : "map");
}

bool LuaReply::add_to(Open& open) {
  switch (open.kind) {
    case Kind::array: lua_rawseti(lua_, -2, ++open.index); break;
    case Kind::set:
      lua_pushboolean(lua_, 1);
      lua_rawset(lua_, -3);
      break;
    case Kind::map:
      if (open.left % 2 == 1) lua_rawset(lua_, -3);  // else it is a key, which waits for its value
      break;
  }
  return --open.left == 0;
}

void LuaReply::done() {
  if (++elements_ % elements_a_charge == 0) context_.spend(elements_a_charge);
  while (depth_ > 0) {
    Open& open = open_[depth_ - 1];
    if (!add_to(open)) return;
    --depth_;
    close(open.kind);
  }
  complete_ = true;
}

void push_error(lua_State* lua, std::string_view text) {
  lua_createtable(lua, 0, 2);
  set_text(lua, "err", text);
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
}

void raise_error(lua_State* lua, std::string_view text) {
  push_error(lua, text);
  lua_error(lua);
  std::unreachable();
}

// --- what a script returns ---

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
  Result(lua_State* lua, Reply& reply, int protocol, std::size_t most)
      : lua_(lua), reply_(reply), resp3_(protocol == 3), left_(most) {}

  bool is_too_large() const noexcept { return too_large_; }

  /// Replies the value at the top and pops it.
  void value(int depth) {
    const int at = lua_gettop(lua_);
    if (too_large_) return lua_settop(lua_, at - 1);
    take(sizeof(Value));
    switch (lua_type(lua_, at)) {
      case LUA_TSTRING: bulk(text_at(lua_, -1)); break;
      case LUA_TNUMBER: reply_.integer(truncated(lua_tonumber(lua_, -1))); break;
      case LUA_TBOOLEAN: boolean(lua_toboolean(lua_, -1) != 0); break;
      case LUA_TTABLE: table(depth); break;
      default: reply_.null();
    }
    lua_settop(lua_, at - 1);
  }

 private:
  void take(std::size_t size) {
    too_large_ = too_large_ || size > left_;
    if (!too_large_) left_ -= size;
  }
  void bulk(std::string_view text) {
    take(text.size());
    if (!too_large_) reply_.bulk(text);
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
    if (has("err", LUA_TSTRING)) return reply_.error(one_line(text_at(lua_, -1)));
    if (has("ok", LUA_TSTRING)) return reply_.simple(one_line(text_at(lua_, -1), false));
    if (has("double", LUA_TNUMBER)) return reply_.number(lua_tonumber(lua_, -1));
    if (has("map", LUA_TTABLE)) return map(depth);
    if (has("set", LUA_TTABLE)) return set(depth);
    if (has("big_number", LUA_TSTRING))
      return reply_.big_number(one_line(text_at(lua_, -1), false));
    if (has("verbatim_string", LUA_TTABLE)) {
      if (has("format", LUA_TSTRING)) {
        lua_pop(lua_, 1);
        if (has("string", LUA_TSTRING)) return reply_.verbatim(text_at(lua_, -1));
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
    for (int i = 1; i <= size && !too_large_; ++i) {
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
      if (too_large_) return lua_pop(lua_, 2);
      lua_pushvalue(lua_, -2);
      value(depth + 1);
      value(depth + 1);
    }
  }

  void set(int depth) {
    reply_.set(count());
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0;) {
      if (too_large_) return lua_pop(lua_, 2);
      lua_pop(lua_, 1);
      lua_pushvalue(lua_, -1);
      value(depth + 1);
    }
  }

  lua_State* lua_;
  Reply& reply_;
  bool resp3_;
  std::size_t left_;
  bool too_large_ = false;
  std::size_t values_ = 0;
};

}  // namespace

std::string one_line(std::string_view text, bool is_error) {
  text = text.substr(0, text.find('\0'));
  while (is_error && !text.empty() && (text.back() == '\r' || text.back() == '\n'))
    text.remove_suffix(1);
  std::string line{text};
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

bool reply_result(lua_State* lua, Reply& reply, int protocol, std::size_t most) {
  Result result{lua, reply, protocol, most};
  result.value(0);
  return !result.is_too_large();
}

}  // namespace sluice::engine
