/// The embedded engine's core: data, commands, scripts. No thread, no lock, no file, no clock of its own, so that a
/// seed reproduces a run. EmbeddedStore puts a lock, a clock and a log around it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context.hpp"
#include "engine/reply.hpp"

namespace sluice::engine {

class Keyspace;
class ScriptRunner;  // Lua: scripts.hpp

class Engine {
 public:
  static constexpr int databases = 16;

  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs one command from the outside: a plain command, EVAL, EVALSHA, SCRIPT ... Errors are replied, not thrown.
  /// Afterwards `context` holds its effects (for the log), its messages and, when it has to wait, its Block.
  void execute(Context& context, Words words, Reply& reply);
  /// A script by its SHA-1, learned at first sight: the fast path of Store::run(Script).
  void execute(Context& context, const Script& script, Words keys, Words args, Reply& reply);
  /// One command inside a script or while loading a log: checks name, arity and flags, runs it, notes its effect.
  void call(Context& context, Words words, Reply& reply);

  Keyspace& keyspace(int database) noexcept { return *keyspaces_[static_cast<std::size_t>(database)]; }
  ScriptRunner& scripts() noexcept { return *scripts_; }

  /// Deletes up to `most` keys that are past their time in all databases, logging a DEL for each into the context.
  std::size_t expire_some(Context& context, std::size_t most);

  /// How many listeners a channel has; set by EmbeddedStore.
  std::function<std::size_t(std::string_view channel)> receivers;
  /// While a log is loaded nothing expires and nothing is logged.
  bool loading = false;

 private:
  std::array<std::unique_ptr<Keyspace>, databases> keyspaces_;
  std::unique_ptr<ScriptRunner> scripts_;
  std::vector<Handler> handlers_;  // by CommandSpec::index; null: not offered
};

/// Collects the handlers of a family; each family's file defines one such function (see engine.cpp).
class Handlers {
 public:
  explicit Handlers(std::vector<Handler>& slots) : slots_(slots) {}
  void add(std::string_view name, Handler handler);

 private:
  std::vector<Handler>& slots_;
};

void add_string_commands(Handlers& handlers);
void add_bit_commands(Handlers& handlers);
void add_key_commands(Handlers& handlers);
void add_hash_commands(Handlers& handlers);
void add_list_commands(Handlers& handlers);
void add_set_commands(Handlers& handlers);
void add_sorted_set_commands(Handlers& handlers);
void add_stream_commands(Handlers& handlers);
void add_server_commands(Handlers& handlers);
void add_script_commands(Handlers& handlers);

}  // namespace sluice::engine
