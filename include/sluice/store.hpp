/// Where the state lives: a Redis or Valkey server, or the embedded engine. Primitives stand on
/// this and know no more.
///
/// Guarantee: a command or script runs atomically; commands that one thread starts one after
///   another on one Store are executed in that order, but for those that have a connection of
///   their own: blocking commands among themselves, and batches that end with WAIT; and but for a
///   script that the server was made to forget meanwhile (SCRIPT FLUSH): it goes again behind what
///   was sent after it. In a cluster the order is that of a slot, and while the slot gets another
///   master that of calls for which a thread waits, not of spawned ones. A reply that was given is
///   as durable as the Store promises (embedded: `fsync`; Redis: its own configuration). An error
///   reply is thrown with the command or script and the key that it was for.
/// Not guaranteed: that a failed call had no effect: `Error::effect()` says what is known.
/// Threads: any. Arguments are copied before a call returns its Task. Await every Task: a server is
///   sent nothing before, while the embedded engine executes at the call. Callbacks, also those of
///   locks, run one after another on a thread that the Store starts for the first, or where
///   OpenOptions::executor says; they may block, and what they throw, of any type, is logged.
///   Threads of ours take no signals (but those of their own faults), so a program may block one
///   after it has opened a Store, and wait for it. A program that a callback starts inherits that.
/// After a fork() a Store works in the parent alone: in the child each call throws Error (closed)
///   at once, and the Store's end does nothing. Open another there.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/standard.hpp"
#include "sluice/store_pointer.hpp"
#include "sluice/task.hpp"
#include "sluice/value.hpp"

namespace sluice {

/// A Lua script, embedded at build time with its SHA-1 (40 lower-case hex digits).
struct Script {
  std::string_view name;  ///< "lock/acquire"; for messages
  std::string_view text;
  std::string_view sha1;
  /// The same for a cluster, where messages go by shard channels: SPUBLISH. It does nothing, and
  /// replies TRYAGAIN, while its slot is under way. Null: it is the same there, and may run then.
  const Script* sharded = nullptr;
  /// Of Sluice itself: its text tells how far it came before it failed. After an error of any other
  /// script the effect is unknown, where the server does not say that it ran nothing. A script that
  /// ends with a server's own words to the letter ("LOADING Redis is loading ...") is taken for the
  /// server: none, and in a cluster it is sent again until the call's deadline.
  bool is_of_sluice = false;
  /// As `sharded`, but with PUBLISH: for a proxy, which may stand before a cluster.
  const Script* guarded = nullptr;
};

using Words = std::span<const std::string_view>;

/// Where a command is executed that only reads.
enum class ReadFrom : std::uint8_t {
  master,
  /// A replica that is no further behind than the Store's `replica_max_lag`, where the Store was
  /// opened with read_from=replica and has one; else the master.
  replica,
};

struct CallOptions {
  /// How long to wait for the reply. 0: the Store's `command_timeout`. More: survives a slow server
  /// longer.
  std::chrono::milliseconds timeout{0};
  /// The call ends at this time of Store::clock() at the latest, whatever `timeout` says.
  SteadyTime until = SteadyTime::max();
  /// A copy of the call does no harm, neither at once nor at any later time, when others that came
  /// after it were acknowledged: it carries an id that the script remembers, or a version that it
  /// compares, or takes at most what ends with a lease. So it may be sent again after a broken
  /// connection, of which a network may hold the first copy and deliver it late. Not so: the call
  /// throws Error with effect unknown. What only reads is sent again anyway. A batch that ends with
  /// WAIT travels with others, and is sent again if all of them may be. The test
  /// LateCopies.BC01_UndoNothingThatWasAcknowledged walks all calls of Sluice that say it.
  bool repeatable = false;
  /// No caller waits for the reply: it is read with the next one, or some 10 ms later, so that no
  /// thread has to wake for it. The call itself is sent at once, as any other.
  bool unhurried = false;
  /// What the call publishes goes to its subscribers before the reply comes, not after. Costs the
  /// server a PING.
  bool messages_first = false;
  /// Of a single command that only reads, and of no other: the rest is the master's, with scripts,
  /// batches and all that a primitive asks. For reads that may be some time old. What a replica
  /// refuses, or does not answer in a quarter of `timeout` and `replica_max_lag`, is asked of the
  /// master.
  ReadFrom read_from = ReadFrom::master;
  /// A replica that serves it has all that was acknowledged before this time of Store::clock().
  /// The time of one's last write makes one's own writes seen, that of one's last read keeps what
  /// is read from going back. Later than `replica_max_lag` says: fewer reads go to replicas.
  SteadyTime no_older_than = SteadyTime::min();
};

/// Commands and scripts to be sent together: one round trip, executed in order, not atomically.
class Batch {
 public:
  struct Item {
    const Script* script = nullptr;  ///< null: a plain command
    std::size_t key_count = 0;       ///< of a script: how many of `words` are keys
    std::vector<std::string> words;  ///< a command's words, or a script's keys and arguments
  };

  Batch& add(Words command);
  Batch& add(std::initializer_list<std::string_view> command) {
    return add(Words{command.begin(), command.size()});
  }
  Batch& add(const Script& script, Words keys, Words args);
  Batch& add(Item item);

  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }
  const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::vector<Item> items_;
};

/// The Error of an item of a Batch whose reply is an error: what the call would throw if it were
/// run alone, with its name, its key and the effect as far as it is known.
Error error_of_item(const Batch::Item& item, std::string_view reply);

struct Message {
  enum class Kind {
    published,
    gap,  ///< The connection was lost and is back: messages may have been missed, look at the state
          ///< itself.
    lost,  ///< Of track() alone: nothing is told until the next gap; `payload` says why.
  };
  Kind kind = Kind::published;
  std::string channel;
  std::string payload;
};

using MessageHandler = std::function<void(const Message&)>;

/// Keeps a handler subscribed. When it is gone the handler does not run any more, and is not
/// running (unless the handler itself destroys it).
class Listener {
 public:
  class Registration {
   public:
    virtual ~Registration() = default;
  };

  Listener() = default;
  explicit Listener(std::unique_ptr<Registration> registration)
      : registration_(std::move(registration)) {}
  explicit operator bool() const noexcept { return registration_ != nullptr; }

 private:
  std::unique_ptr<Registration> registration_;
};

class Store {
 public:
  virtual ~Store() = default;

  /// Runs one command. Throws Error, also for an error reply. Blocking commands (BLPOP, XREADGROUP
  /// BLOCK ...) are allowed and hold up nobody else; their own timeout is added to the call's.
  virtual Task<Value> run(Words command, CallOptions options = {}) = 0;
  /// Runs a script by its SHA-1, and teaches it to a server that has forgotten it.
  virtual Task<Value> run(const Script& script, Words keys, Words args,
                          CallOptions options = {}) = 0;
  /// Runs a batch in one round trip. An error reply of one item is a Value of type error in its
  /// place; a lost connection is thrown. A WAIT at its end waits until replicas have what the batch
  /// has written. Batches that end with the same WAIT share a connection, which executes them in
  /// the order of their calls, and a WAIT where they come together; each ends at its own deadline,
  /// and without effect if its turn has not come. The embedded engine has no replicas, and answers
  /// 0.
  virtual Task<std::vector<Value>> run(Batch batch, CallOptions options = {}) = 0;

  Task<Value> run(std::initializer_list<std::string_view> command, CallOptions options = {}) {
    return run(Words{command.begin(), command.size()}, options);
  }
  Task<Value> run(const Script& script, std::initializer_list<std::string_view> keys,
                  std::initializer_list<std::string_view> args, CallOptions options = {}) {
    return run(script, Words{keys.begin(), keys.size()}, Words{args.begin(), args.size()}, options);
  }

  /// Subscribes `handler` to a channel; done once the server has confirmed it, so that no later
  /// message is missed. Handlers of one channel share one subscription. A handler is called as all
  /// callbacks are, in order, never twice at once; one that does not keep up is told of a gap
  /// instead of its oldest 1024 messages.
  virtual Task<Listener> listen(std::string channel, MessageHandler handler) = 0;

  /// Calls `handler` whenever the connection to the server was lost and there is a new one: what
  /// stood there may not stand there any more. A Store without a connection never calls it, and
  /// returns nothing.
  virtual Listener on_reconnect(std::function<void()> handler);

  // What locks and caches use. The handlers are called by whichever thread reads: they must be
  // short, and must not block. call_back() runs a callback of the Store's user; it never throws.
  virtual Task<Listener> subscribe(std::string channel, MessageHandler handler);
  virtual Listener watch_connection(std::function<void()> handler);
  /// Tells `handler` of each key that begins with `prefix` and is written, deleted or expires, by
  /// any client: `channel` is the prefix, `payload` the key. Returns at once. A gap comes first,
  /// when the store has begun to tell, and where all keys may have changed (FLUSHALL): what was
  /// read before it may be old. A key may be told of twice, or because a command that writes has
  /// read it. `lost` comes where the store does not tell any more, or refuses to (a proxy, a right
  /// that is missing): then what was read may be old from now on. A store that was lost is asked
  /// again when it is back. Trackers share one subscription. Throws Error (bad_argument) for a
  /// Store that never tells.
  virtual Listener track(std::string prefix, MessageHandler handler);
  virtual void call_back(std::function<void()> callback) noexcept;

  /// The clock by which waits and local validity are measured.
  virtual Clock& clock() noexcept = 0;
  /// What a waiting thread can drive to make replies come; may be null.
  virtual Driver* driver() noexcept = 0;
  /// The same for messages of channels.
  virtual Driver* message_driver() noexcept { return driver(); }
  /// Keys lie on several servers, by their slots (Redis Cluster), and a script sees those of one
  /// slot. subscribe() hears what `sharded` scripts publish then: a channel has a slot, too, which
  /// must be that of the script's keys. listen() hears PUBLISH, of all servers.
  virtual bool is_sharded() const noexcept { return false; }
  /// For messages: the URL without its password.
  virtual std::string describe() const = 0;

  /// The store's TIME.
  Task<WallTime> time();
};

}  // namespace sluice
