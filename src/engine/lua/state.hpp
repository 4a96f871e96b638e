/// An open Lua machine with the sandbox of scripts in it.
#pragma once

#include <expected>
#include <lua.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"
#include "engine/lua/private_arguments.hpp"
#include "engine/lua/script_run.hpp"

namespace sluice::engine {

/// A script as the Lua machine has it.
struct LuaScript {
  int function = LUA_NOREF;             ///< in the registry
  std::optional<PrivateArguments> own;  ///< empty: KEYS and ARGV are shared
};

class LuaState {
 public:
  enum class Use { scripts, functions };
  /// `run` is told to every script and has to outlive the state.
  explicit LuaState(ScriptRun& run, Use use = Use::scripts);
  ~LuaState();

  /// A compiled script, or why it cannot be compiled.
  std::expected<LuaScript, std::string> compile(std::string_view text);
  void forget(LuaScript& script);

  /// Runs a compiled script in `run` and leaves its one result on the stack; pop() it. An error is
  /// given as text and leaves nothing.
  std::expected<void, std::string> call(LuaScript& script, Words keys, Words args);

  // For functions:

  /// Runs the code of a library, behind its first line, and gives what it registered, also where
  /// there is an error.
  std::expected<void, std::string> load(std::string_view code, std::vector<LuaFunction>& functions);
  /// As for a script; the function gets its keys and arguments as tables.
  std::expected<void, std::string> call(const LuaFunction& function, Words keys, Words args);
  void forget(const LuaFunction& function);

  lua_State* lua() noexcept { return lua_; }
  void pop() { lua_settop(lua_, bottom_); }

 private:
  /// KEYS or ARGV: where its table lies in the stack, and what it was filled with.
  struct Given {
    int slot;
    const char* name;
    std::size_t size = 0;
    unsigned fills = 0;  ///< of the same table
  };

  void give(LuaScript& script, Words keys, Words args);
  void give(Given& given, Words words);
  void give_new(Given& given, Words words);
  void fill(Given& given, Words words);
  bool holds_only(int slot, std::size_t size);
  /// Leaves the chunk on the stack, or gives the compiler's words.
  std::expected<void, std::string> load_chunk(std::string_view text, const char* name);
  void make_environment();  ///< of functions; the globals are at the top of the stack
  void begin_run();
  /// Calls what lies on the stack with so many arguments.
  std::expected<void, std::string> run_pushed(int arguments, int results);
  std::string failure(int status);
  void make_room();

  static constexpr std::size_t little_garbage = 4UL << 20;

  ScriptRun& run_;
  LuaMemory memory_;
  LuaRandom random_;
  lua_State* lua_;
  Given keys_;
  Given args_;
  int bottom_ = 0;
  std::vector<LuaFunction>* loading_ = nullptr;
  CjsonConfig* cjson_ = nullptr;  // a script's settings end with it
  std::size_t garbage_at_ = little_garbage;
};

}  // namespace sluice::engine
