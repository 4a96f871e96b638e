/// Libraries of functions (FUNCTION LOAD), which FCALL calls by name. They have a Lua machine of
/// their own, which all libraries share, as in Redis; it lives from the first library to
/// FUNCTION FLUSH.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lua/script_run.hpp"
#include "engine/lua/state.hpp"

namespace sluice::engine {

struct FunctionLibrary {
  std::string name;
  std::string code;  ///< with its first line
  std::vector<LuaFunction> functions;
};

class FunctionLibraries {
 public:
  using Libraries = std::map<std::string, FunctionLibrary, std::less<>>;
  enum class Join { append, replace, flush };

  explicit FunctionLibraries(ScriptRun& run) : run_(run) {}

  // Each does all or nothing, and gives an error text, with its code.

  /// The library's name.
  std::expected<std::string, std::string> load(std::string_view code, bool replace);
  std::expected<void, std::string> load_all(const std::vector<std::string>& codes, Join join);
  /// False: there is none.
  bool erase(std::string_view name);
  void flush();

  const Libraries& all() const noexcept { return libraries_; }
  /// In any case. Null: there is none.
  const LuaFunction* find(std::string_view function) const;
  /// REQUIRES: there is a library.
  LuaState& lua() noexcept { return *lua_; }

 private:
  std::expected<FunctionLibrary, std::string> make(std::string_view code, bool replace);
  std::expected<void, std::string> join(std::vector<FunctionLibrary>& more, Join join);
  void forget(const FunctionLibrary& library);

  ScriptRun& run_;
  std::unique_ptr<LuaState> lua_;
  Libraries libraries_;
};

}  // namespace sluice::engine
