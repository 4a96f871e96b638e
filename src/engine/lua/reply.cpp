#include "engine/lua/reply.hpp"

#include <algorithm>
#include <utility>

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
  push_field("ok", text);
  done();
}

void LuaReply::bulk(std::string_view text) {
  push_text(text);
  done();
}

void LuaReply::verbatim(std::string_view text) {
  if (!resp3_) return bulk(text);
  lua_createtable(lua_, 0, 1);
  push_field("string", text);
  push_text("txt");
  lua_setfield(lua_, -2, "format");
  lua_setfield(lua_, -2, "verbatim_string");
  done();
}

void LuaReply::error(std::string_view text) {
  error_ = depth_ == 0;
  push_error(lua_, text);
  done();
}

void LuaReply::push_field(const char* name, std::string_view text) {
  lua_createtable(lua_, 0, 1);
  push_text(text);
  lua_setfield(lua_, -2, name);
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
  lua_pushlstring(lua, text.data(), text.size());
  lua_setfield(lua, -2, "err");
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
}

void raise_error(lua_State* lua, std::string_view text) {
  push_error(lua, text);
  lua_error(lua);
  std::unreachable();
}

}  // namespace sluice::engine
