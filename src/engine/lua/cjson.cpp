// The library "cjson": JSON as in Mark Pulford's Lua CJSON 2.1. Decoding is in
// cjson_decode.cpp.
#include "engine/lua/cjson.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"

namespace sluice::engine {
namespace {

// A table that holds another twice, which holds another twice ..., grows without end.
constexpr std::size_t longest_text = 128UL << 20;

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

  std::string_view text() const noexcept { return text_; }

  /// Writes the value at the top of the stack.
  void value(int depth) {
    if (++values_ % values_a_charge == 0) spend_steps(lua_, values_a_charge * 4);
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
    const auto bytes = text_at(lua_, -1);
    text_ += '"';
    std::size_t plain = 0;  // where the bytes begin that are not written yet
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char* escape = escapes[bytes[i]];
      if (*escape == '\0') continue;
      text_.append(bytes.substr(plain, i - plain)).append(escape);
      plain = i + 1;
    }
    text_.append(bytes.substr(plain));
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
  static constexpr std::size_t values_a_charge = 100;

  const CjsonConfig& config_;
  ScriptString text_{ScriptAllocator<char>{lua_}};
  std::size_t values_ = 0;
};

int encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  Encoder encoder(lua, cjson_config(lua));
  encoder.value(0);
  return push_text(lua, encoder.text());
}

/// The setting at `argument`, if it is given, and always the present one as the result.
void integer_setting(lua_State* lua, int argument, int& setting, int least, int most) {
  if (!lua_isnil(lua, argument)) {
    const lua_Integer value = luaL_checkinteger(lua, argument);
    if (value < least || value > most)
      luaL_argerror(lua, argument,
                    lua_pushfstring(lua, "expected integer between %d and %d", least, most));
    setting = static_cast<int>(value);
  }
  lua_pushinteger(lua, setting);
}

void boolean_setting(lua_State* lua, int argument, bool& setting) {
  static constexpr const char* names[] = {"off", "on", nullptr};
  if (lua_isboolean(lua, argument)) {
    setting = lua_toboolean(lua, argument) != 0;
  } else if (!lua_isnil(lua, argument)) {
    setting = luaL_checkoption(lua, argument, nullptr, names) != 0;
  }
  lua_pushboolean(lua, setting);
}

void take_arguments(lua_State* lua, int most) {
  luaL_argcheck(lua, lua_gettop(lua) <= most, most + 1, "found too many arguments");
  lua_settop(lua, most);
}

int encode_sparse_array(lua_State* lua) {
  auto& config = cjson_config(lua);
  take_arguments(lua, 3);
  boolean_setting(lua, 1, config.sparse_as_object);
  integer_setting(lua, 2, config.sparse_ratio, 0, INT_MAX);
  integer_setting(lua, 3, config.sparse_safe, 0, INT_MAX);
  return 3;
}

template <int CjsonConfig::*member, int least, int most>
int integer_function(lua_State* lua) {
  take_arguments(lua, 1);
  integer_setting(lua, 1, cjson_config(lua).*member, least, most);
  return 1;
}

template <bool CjsonConfig::*member>
int boolean_function(lua_State* lua) {
  take_arguments(lua, 1);
  boolean_setting(lua, 1, cjson_config(lua).*member);
  return 1;
}

int encode_invalid_numbers(lua_State* lua) {
  static constexpr const char* names[] = {"off", "on", "null", nullptr};
  auto& setting = cjson_config(lua).encode_invalid;
  take_arguments(lua, 1);
  if (lua_isboolean(lua, 1)) {
    setting =
        lua_toboolean(lua, 1) ? CjsonConfig::Invalid::as_number : CjsonConfig::Invalid::refuse;
  } else if (!lua_isnil(lua, 1)) {
    setting = static_cast<CjsonConfig::Invalid>(luaL_checkoption(lua, 1, nullptr, names));
  }
  if (setting == CjsonConfig::Invalid::as_null) {
    lua_pushliteral(lua, "null");
  } else {
    lua_pushboolean(lua, setting == CjsonConfig::Invalid::as_number);
  }
  return 1;
}

int make(lua_State* lua) {
  push_cjson_library(lua);
  return 1;
}

constexpr int max_depth = 1000;  // the coder is recursive: what a thread's stack surely holds

constexpr luaL_Reg cjson_functions[] = {
    {"encode", encode},
    {"decode", cjson_decode},
    {"encode_sparse_array", encode_sparse_array},
    {"encode_max_depth", integer_function<&CjsonConfig::encode_depth, 1, max_depth>},
    {"decode_max_depth", integer_function<&CjsonConfig::decode_depth, 1, max_depth>},
    {"encode_number_precision", integer_function<&CjsonConfig::precision, 1, 14>},
    {"encode_keep_buffer", boolean_function<&CjsonConfig::keep_buffer>},
    {"encode_invalid_numbers", encode_invalid_numbers},
    {"decode_invalid_numbers", boolean_function<&CjsonConfig::decode_invalid>},
    {"new", make},
};

}  // namespace

CjsonConfig* push_cjson_library(lua_State* lua) {
  lua_newtable(lua);
  // Trivially destroyed, so it needs no __gc.
  auto* config = new (lua_newuserdata(lua, sizeof(CjsonConfig))) CjsonConfig;
  for (const auto& function : cjson_functions) {
    lua_pushvalue(lua, -1);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -3, function.name);
  }
  lua_pop(lua, 1);
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
  set_text(lua, "_NAME", "cjson");
  set_text(lua, "_VERSION", "2.1.0");
  return config;
}

}  // namespace sluice::engine
