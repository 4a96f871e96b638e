/// The databases and the commands that run on them. No thread, no lock, no file, no clock of its
/// own, so that a seed reproduces a run. RedisEngine adds the commands and the scripts,
/// EmbeddedStore a lock, a clock and a log.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/context.hpp"
#include "engine/core/reply.hpp"
#include "engine/types/random.hpp"
#include "engine/types/undo.hpp"

namespace sluice::resp {
struct CommandSpec;
}

namespace sluice::engine {

class Keyspace;
class ScriptRunner;  // lua/scripts.hpp

class Engine {
 public:
  static constexpr int databases = 16;

  /// Runs one command from the outside or from a log: a plain command, EVAL, SCRIPT ... Errors are
  /// replied, not thrown. Afterwards `context` holds its effects (for the log), its messages and,
  /// when it has to wait, its Block.
  void execute(Context& context, Words words, Reply& reply);

  /// A row of the command table with its handler. A script looks it up once and remembers it.
  struct Command {
    const resp::CommandSpec* spec = nullptr;
    Handler handler = nullptr;
    bool has_subcommands = false;  ///< at least one of them has a handler

    bool is_offered() const noexcept { return handler || has_subcommands; }
  };
  /// All that the table knows, offered here or not.
  std::span<const Command> commands() const noexcept { return commands_; }
  /// The row of a spec; null: the spec is null, or the engine does not offer that command.
  const Command* offered(const resp::CommandSpec* spec) const noexcept;
  /// Null: there is none of that name. The pointer is good as long as the engine.
  const Command* command_named(std::string_view name) const noexcept;
  const Command* subcommand_named(const Command& container, std::string_view name) const noexcept;
  /// Runs a command that was found and notes its effect. REQUIRES: it has a handler, and its arity
  /// and flags allow it.
  void run(Context& context, const Command& command, Words words, Reply& reply);

  /// From now on each change can be taken back. REQUIRES: not begun.
  void begin_undo() noexcept {
    undo_ = &steps_;
    rng_before_ = rng;
  }
  /// Takes back what was changed since begin_undo().
  void take_back() noexcept;
  /// What was changed stays.
  void end_undo() noexcept {
    undo_ = nullptr;
    steps_.forget();
  }
  /// Null: nobody asks for it.
  Undo* undo() noexcept { return undo_; }

  Keyspace& keyspace(int database) noexcept {
    return *keyspaces_[static_cast<std::size_t>(database)];
  }
  ScriptRunner& scripts() noexcept { return *scripts_; }

  /// Deletes up to `most` expired keys in all databases, logging a DEL for each into the context.
  std::size_t expire_some(Context& context, std::size_t most);

  static constexpr std::int64_t no_expiry = std::numeric_limits<std::int64_t>::max();
  /// No key of any database expires before this; no_expiry: none expires. It may lie too early, by
  /// keys that are gone, and is right after find_soonest_expiry().
  std::int64_t soonest_expiry_ms() const noexcept { return soonest_ms_; }
  /// O(databases).
  void find_soonest_expiry() noexcept;

  /// SWAPDB.
  void swap_databases(int one, int other) noexcept;

  /// Notes an effect in the context, preceded by SELECT where the log's end is in another database.
  void log(Context& context, int database, Words command);
  /// Logs a DEL for each key of `database` that was found expired.
  void log_expired(Context& context, int database);

  // What only the surroundings know; each may be left empty.

  /// How many listeners a channel has, or one of shards, which are others.
  std::function<std::size_t(std::string_view channel, bool sharded)> receivers;
  /// All channels that have a listener, for PUBSUB CHANNELS.
  std::function<std::vector<std::string>()> channels;
  /// Appends "name:value\r\n" lines to a section of INFO ("server", "persistence" ...), given in
  /// lower case.
  std::function<void(std::string_view section, std::string& info)> more_info;
  /// BGREWRITEAOF; empty: there is no log.
  std::function<void()> start_rewrite;
  /// CONFIG SET of a parameter that the surroundings act upon; gives an error text, or empty.
  std::function<std::string(std::string_view name, std::string_view value)> configure;

  /// Asked before each command that may write; a text refuses the command with that error.
  std::function<std::optional<std::string>(const resp::CommandSpec& spec, Words words)>
      before_write;

  /// CONFIG GET knows these; tools that set what does not matter here are answered OK.
  std::map<std::string, std::string, std::less<>> config;

  /// Which changes of keys are published, as EventKind says; 0: none.
  std::uint32_t notified_events = 0;
  /// While a log is loaded nothing expires and nothing is logged.
  bool loading = false;
  /// False where no log is kept: then effects are not even built.
  bool keeps_log = true;
  /// The database that the log's end is in; -1 where the next effect has to SELECT one (a new
  /// file).
  int log_database = -1;

  SeededRandom rng;
  /// For INFO: 40 hex digits, others for each engine.
  std::string run_id;
  std::uint64_t commands_run = 0;
  std::uint64_t changes_made = 0;
  std::uint64_t keys_expired = 0;
  struct CommandCounts {
    std::uint64_t calls = 0;
    std::uint64_t rejected = 0;  ///< errors before it was run
    std::uint64_t failed = 0;    ///< errors after that
  };
  std::vector<CommandCounts> counts;  ///< by CommandSpec::index
  std::map<std::string, std::uint64_t, std::less<>> errors;  ///< by their first word
  /// A client got an error. `spec` may be null.
  void note_error(const resp::CommandSpec* spec, bool ran, std::string_view error);
  std::int64_t started_us = 0;  ///< time of the first command, 0 before it

 protected:
  explicit Engine(std::uint64_t seed);
  ~Engine();

  /// Throws std::logic_error where the command table has no such name.
  void add(CommandRows rows);
  void set_scripts(ScriptRunner& scripts) noexcept { scripts_ = &scripts; }

 private:
  std::int64_t soonest_ms_ = no_expiry;
  Undo steps_;
  Undo* undo_ = nullptr;
  SeededRandom rng_before_{0};
  std::array<std::unique_ptr<Keyspace>, databases> keyspaces_;
  ScriptRunner* scripts_ = nullptr;
  std::vector<Command> commands_;  // by CommandSpec::index
};

}  // namespace sluice::engine
