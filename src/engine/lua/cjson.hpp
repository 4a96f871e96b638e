/// What a script may set of the library "cjson", and where the library keeps it.
#pragma once

#include <lua.hpp>

namespace sluice::engine {

struct CjsonConfig {
  enum class Invalid { refuse, as_number, as_null };  ///< what becomes of NaN and infinity

  bool sparse_as_object = false;
  int sparse_ratio = 2;
  int sparse_safe = 10;
  int encode_depth = 1000;
  int decode_depth = 1000;
  int precision = 14;
  bool keep_buffer = true;
  Invalid encode_invalid = Invalid::refuse;
  bool decode_invalid = true;
};

/// The configuration of the library whose function runs: its first upvalue.
inline CjsonConfig& cjson_config(lua_State* lua) {
  return *static_cast<CjsonConfig*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int cjson_decode(lua_State* lua);

}  // namespace sluice::engine
