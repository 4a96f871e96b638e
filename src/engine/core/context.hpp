/// What a command sees while it runs: the data, the frozen time, and where its effects go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/reply.hpp"
#include "sluice/store.hpp"

namespace sluice::resp {
struct CommandSpec;
}

namespace sluice::engine {

class Engine;
class Keyspace;
class Undo;

/// What a script may still spend. A command that works on many elements asks it now and then.
class Allowance {
 public:
  /// Throws where nothing is left.
  virtual void spend(std::uint64_t steps) = 0;

 protected:
  ~Allowance() = default;
};

/// Asked before each command of a script.
class Guard {
 public:
  /// Empty: it may be run. Else the error, code first.
  virtual std::optional<std::string> refusal_of(const resp::CommandSpec& spec, Words words) = 0;

 protected:
  ~Guard() = default;
};

/// State of one connection. The embedded Store has one for all its callers.
struct Session {
  int database = 0;
  int protocol = 3;        ///< RESP version of replies: decides null_array, map, set, number
  Guard* guard = nullptr;  ///< null: its scripts may run all commands
};

/// A key, and the database that it is in.
struct KeyOfDatabase {
  int database = 0;
  std::string key;
  auto operator<=>(const KeyOfDatabase&) const = default;
};

/// A command that found nothing and may wait: run it again when one of `keys` was signalled.
struct Block {
  std::vector<std::string> keys;
  std::int64_t timeout_ms = 0;  ///< 0: for ever
  /// If not empty, run this instead of the command's own words: XREAD's "$" means the end of the
  /// stream as it was at first.
  std::vector<std::string> words = {};
};

/// One execution of a top-level command or script; shared by all commands of the script.
class Context {
 public:
  Context(Engine& engine, Session& session, std::int64_t now_us)
      : engine_(engine), session_(session), now_us_(now_us) {}

  Engine& engine() noexcept { return engine_; }
  Session& session() noexcept { return session_; }
  Keyspace& keys() noexcept;  ///< of the session's database

  /// Server time, frozen for a whole script (as Redis 7.2), never going back.
  std::int64_t now_us() const noexcept { return now_us_; }
  std::int64_t now_ms() const noexcept { return now_us_ / 1000; }

  bool in_script() const noexcept { return allowance_ != nullptr; }
  /// False: a command that would wait replies as after its timeout.
  bool may_wait() const noexcept { return !in_script() && !in_transaction_; }
  /// The commands of EXEC follow, which are one execution.
  void begin_transaction() noexcept { in_transaction_ = true; }
  /// Null: no script runs.
  Allowance* allowance() const noexcept { return allowance_; }
  void set_allowance(Allowance* allowance) noexcept { allowance_ = allowance; }
  /// Called before or while so many steps are made, each about as long as looking at an element.
  /// In a script it throws when the script has spent all it may: then all is undone, so it may
  /// be called in the middle of a change.
  void spend(std::uint64_t steps) {
    if (allowance_) allowance_->spend(steps);
  }
  /// Told of each change of the data. Null: nobody asks for them back.
  Undo* undo() noexcept;

  /// A write command calls this for what it changed; without it nothing is logged. O(1).
  void changed(std::size_t by = 1) noexcept { changes_ += by; }
  std::size_t changes() const noexcept { return changes_; }

  /// Logs `command` instead of the command's own words (SET k v PXAT ..., SREM for SPOP). May be
  /// called several times.
  void log_instead(std::initializer_list<std::string_view> command) {
    log_instead(Words{command.begin(), command.size()});
  }
  void log_instead(Words command);
  /// EVAL: the commands that the script ran have logged their effects.
  void logged_already() noexcept { replaced_ = true; }

  /// A list, sorted set or stream got something: callers blocked on `key` are served after this
  /// execution.
  void signal(std::string_view key) { signalled_.push_back({session_.database, std::string{key}}); }
  /// Any key may have something now (SWAPDB).
  void signal_all() noexcept { signals_all_ = true; }
  bool signals_all() const noexcept { return signals_all_; }
  /// Nothing is there: wait. REQUIRES: may_wait(), nothing replied.
  void block(std::vector<std::string> keys, std::int64_t timeout_ms,
             std::vector<std::string> words = {}) {
    block_.push_back({std::move(keys), timeout_ms, std::move(words)});
  }

  /// Number of receivers. Delivered after the execution, in order. `sharded`: SPUBLISH, whose
  /// channels are others.
  std::size_t publish(std::string_view channel, std::string_view payload, bool sharded = false);

  /// All that was noted so far, to come back to.
  struct Mark {
    std::size_t changes, effects, signalled, blocks, published;
    bool replaced;
    int log_database;
  };
  Mark mark() const noexcept;
  void return_to(const Mark& mark) noexcept;

  // For the engine alone, between commands:
  bool take_replaced() noexcept { return std::exchange(replaced_, false); }
  std::vector<std::vector<std::string>>& effects() noexcept { return effects_; }
  std::vector<KeyOfDatabase>& signalled() noexcept { return signalled_; }
  std::vector<Block>& blocks() noexcept { return block_; }
  struct Published {
    std::string channel;
    std::string payload;
    bool sharded = false;
  };
  std::vector<Published>& published() noexcept { return published_; }

 private:
  Engine& engine_;
  Session& session_;
  std::int64_t now_us_;
  Allowance* allowance_ = nullptr;
  bool in_transaction_ = false;
  bool replaced_ = false;
  bool signals_all_ = false;
  std::size_t changes_ = 0;
  std::vector<std::vector<std::string>> effects_;
  std::vector<KeyOfDatabase> signalled_;
  std::vector<Block> block_;
  std::vector<Published> published_;
};

/// A command. `words[0]` is its name; the arity has been checked.
using Handler = void (*)(Context& context, Words words, Reply& reply);

struct CommandRow {
  std::string_view name;  ///< lower case; of a subcommand "xgroup|create"
  Handler handler;
};
using CommandRows = std::span<const CommandRow>;

}  // namespace sluice::engine
