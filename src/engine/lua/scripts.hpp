/// Lua scripts: EVAL, EVALSHA, SCRIPT, FCALL and the fast path of Store::run(Script).
///
/// A script runs on its caller's thread, under the engine's lock, at one frozen time. Its writes
/// are the effects of one execution; those made before an error stay, as in Redis. But a script
/// that is ended, by a limit or a failure of the engine, has done nothing: its writes are undone,
/// and nothing of it is logged, published or signalled.
#pragma once

#include <expected>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/core/context.hpp"
#include "engine/lua/functions.hpp"
#include "engine/lua/script_run.hpp"
#include "engine/lua/state.hpp"

namespace sluice::engine {

class ScriptRunner {
 public:
  explicit ScriptRunner(Engine& engine);
  ~ScriptRunner();

  /// Forgets all scripts.
  void set_limits(const ScriptLimits& limits);
  const ScriptLimits& limits() const noexcept { return run_.limits; }

  struct Call {
    Words keys;
    Words args;
    bool read_only = false;  ///< EVAL_RO: no command that writes
  };

  void run(Context& context, const Script& script, const Call& call, Reply& reply);
  void eval(Context& context, std::string_view text, const Call& call, Reply& reply);
  void evalsha(Context& context, std::string_view sha1, const Call& call, Reply& reply);

  /// A function of a library.
  void fcall(Context& context, std::string_view function, const Call& call, Reply& reply);
  FunctionLibraries& functions() noexcept { return functions_; }

  /// The SHA-1 of a script that is kept from now on, or why it cannot be compiled.
  std::expected<std::string, std::string> load(std::string_view text);
  bool knows(std::string_view sha1) const;
  void flush();
  std::size_t size() const noexcept { return scripts_.size(); }

 private:
  struct Sha1Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view sha1) const noexcept;
  };
  struct Compiled {
    LuaScript script;
    bool has_header = false;
    bool no_writes = false;
    bool kept = false;                     ///< SCRIPT LOAD, or of the program itself: never evicted
    std::list<std::string>::iterator use;  ///< place in `recent_`, unless it is kept
  };
  using Scripts = std::unordered_map<std::string, Compiled, Sha1Hash, std::equal_to<>>;

  std::expected<Scripts::iterator, std::string> learn(std::string_view sha1, std::string_view text,
                                                      bool keep);
  void evict();
  void run(Context& context, const Script& script, bool keep, const Call& call, Reply& reply);
  void execute(Context& context, Scripts::iterator script, const Call& call, Reply& reply);
  /// `start` leaves its result on the stack of `lua`, as LuaState::call().
  template <class Start>
  void execute(Context& context, LuaState& lua, std::string_view name, bool read_only,
               Start&& start, Reply& reply);

  ScriptRun run_;
  FunctionLibraries functions_{run_};
  std::unique_ptr<LuaState> lua_;
  Scripts scripts_;                // by SHA-1 in lower case
  std::list<std::string> recent_;  // of those that came by EVAL; the latest used is the first
};

}  // namespace sluice::engine
