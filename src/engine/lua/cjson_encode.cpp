#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "engine/lua/cjson.hpp"

namespace sluice::engine {

namespace {

constexpr std::size_t longest_text =
    128UL << 20;  // a table that holds another twice, and so on, grows without end

/// The escape of a byte, empty where it stands for itself.
struct Escapes {
  char text[256][8] = {};

  Escapes() {
    for (unsigned c = 0; c < 32; ++c) std::snprintf(text[c], sizeof text[c], "\\u%04x", c);
    std::snprintf(text[127], sizeof text[127], "\\u007f");
    static constexpr std::string_view named = "\"\"\\\\//\bb\tt\nn\ff\rr";
    for (std::size_t i = 0; i < named.size(); i += 2)
      std::snprintf(text[static_cast<unsigned char>(named[i])], sizeof text[0], "\\%c",
                    named[i + 1]);
  }
  const char* operator[](char c) const noexcept { return text[static_cast<unsigned char>(c)]; }
};

class Encoder {
 public:
  Encoder(lua_State* lua, const CjsonConfig& config) : lua_(lua), config_(config) {}

  const std::string& text() const noexcept { return text_; }

  /// Writes the value at the top of the stack.
  void value(int depth) {
    if (text_.size() > longest_text)
      luaL_error(lua_, "Cannot serialise: more than %d bytes", int{longest_text});
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING: return string();
      case LUA_TNUMBER: return number(lua_tonumber(lua_, -1));
      case LUA_TBOOLEAN: text_ += lua_toboolean(lua_, -1) ? "true" : "false"; return;
      case LUA_TNIL: text_ += "null"; return;
      case LUA_TTABLE: return table(depth + 1);
      case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(lua_, -1) != nullptr) break;
        text_ += "null";
        return;
      default: break;
    }
    refuse(-1, "type not supported");
  }

 private:
  void refuse(int at, const char* reason) {
    luaL_error(lua_, "Cannot serialise %s: %s", lua_typename(lua_, lua_type(lua_, at)), reason);
  }

  void string() {
    static const Escapes escapes;
    std::size_t size = 0;
    const char* bytes = lua_tolstring(lua_, -1, &size);
    text_ += '"';
    std::size_t plain = 0;  // where the bytes begin that are not written yet
    for (std::size_t i = 0; i < size; ++i) {
      const char* escape = escapes[bytes[i]];
      if (*escape == '\0') continue;
      text_.append(bytes + plain, i - plain).append(escape);
      plain = i + 1;
    }
    text_.append(bytes + plain, size - plain);
    text_ += '"';
  }

  void number(double number) {
    if (!std::isfinite(number) && config_.encode_invalid != CjsonConfig::Invalid::as_number) {
      if (config_.encode_invalid == CjsonConfig::Invalid::refuse)
        luaL_error(lua_, "Cannot serialise number: must not be NaN or Inf");
      text_ += "null";
      return;
    }
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.*g", config_.precision,
                  std::isnan(number) ? std::fabs(number) : number);
    text_ += digits;
  }

  /// The length of the array that the table at the top is; -1: it is an object.
  long long array_length() {
    long long longest = 0;
    long long count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; ++count) {
      lua_pop(lua_, 1);
      const double key = lua_type(lua_, -1) == LUA_TNUMBER ? lua_tonumber(lua_, -1) : 0;
      if (!(key >= 1 && key <= 0x7fffffff) || std::floor(key) != key) {
        lua_pop(lua_, 1);
        return -1;
      }
      longest = std::max(longest, static_cast<long long>(key));
    }
    const bool sparse = config_.sparse_ratio > 0 && longest > config_.sparse_safe &&
                        longest > count * config_.sparse_ratio;
    if (!sparse) return longest;
    if (!config_.sparse_as_object)
      luaL_error(lua_, "Cannot serialise table: excessively sparse array");
    return -1;
  }

  void table(int depth) {
    if (depth > config_.encode_depth || !lua_checkstack(lua_, 4))
      luaL_error(lua_, "Cannot serialise, excessive nesting (%d)", depth);
    const long long length = array_length();
    length > 0 ? array(static_cast<int>(length), depth) : object(depth);
  }

  void array(int length, int depth) {
    for (int i = 1; i <= length; ++i) {
      text_ += i == 1 ? '[' : ',';
      lua_rawgeti(lua_, -1, i);
      value(depth);
      lua_pop(lua_, 1);
    }
    text_ += ']';
  }

  void object(int depth) {
    text_ += '{';
    bool first = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      if (!first) text_ += ',';
      first = false;
      key();
      text_ += ':';
      value(depth);
    }
    text_ += '}';
  }

  /// The key below the top.
  void key() {
    switch (lua_type(lua_, -2)) {
      case LUA_TNUMBER:
        text_ += '"';
        number(lua_tonumber(lua_, -2));
        text_ += '"';
        return;
      case LUA_TSTRING:
        lua_pushvalue(lua_, -2);
        string();
        lua_pop(lua_, 1);
        return;
      default: refuse(-2, "table key must be a number or string");
    }
  }

  lua_State* lua_;
  const CjsonConfig& config_;
  std::string text_;
};

}  // namespace

int cjson_encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  Encoder encoder(lua, cjson_config(lua));
  encoder.value(0);
  lua_pushlstring(lua, encoder.text().data(), encoder.text().size());
  return 1;
}

}  // namespace sluice::engine
