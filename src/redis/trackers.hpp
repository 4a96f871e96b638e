/// Who is told of changed keys, and what the listening connection has to ask of the server for it.
///
/// For one connection a server takes only prefixes of which none begins with another, and ends all
/// of them at once (CLIENT TRACKING, BCAST mode). So a question is the whole of it: OFF, and ON
/// with the shortest prefixes that cover all trackers. A change between the two is not told: with
/// the answer each tracker gets a gap. A tracker whose keys are told already costs a PING, so that
/// its gap comes in its place among the messages. Prefixes that no tracker needs stay until the
/// next ON, or until no tracker is left.
///
/// One question is under way at a time. An answer counts on the connection that it was made for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/channels.hpp"

namespace sluice::redis {

/// Threads: any. Handlers are called without a lock of this class, by the thread that reads, or by
/// the reactor's when no thread does.
class Trackers {
 public:
  struct Tracker {
    Tracker(std::string keys, MessageHandler function)
        : prefix(std::move(keys)), handler(std::move(function)) {}

    const std::string prefix;
    Handler handler;
    bool is_told = false;  ///< since its last gap. Under the lock of Trackers
  };
  struct Question {
    std::vector<std::vector<std::string>> commands;
    std::vector<std::string> prefixes;  ///< that the server tells of when it is answered
    std::uint64_t connection;

    bool is_anew() const noexcept { return commands.size() > 1; }  ///< OFF and ON
  };

  /// Called when there is something to ask: while next() gives a question, it has to be sent, and
  /// its answer to be given to take().
  std::function<void()> on_stale;

  void add(std::shared_ptr<Tracker> tracker);
  void remove(const Tracker& tracker) noexcept;
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  std::optional<Question> next();
  /// `refusal`: what the server answers instead of OK; empty: it tells from now on. By the thread
  /// that reads, in its place among the messages.
  void take(const Question& question, const std::string& refusal);
  /// It could not be sent: the next connection is asked.
  void give_up();

  void connected();
  void lost(const std::string& why);
  /// A push of the server: "invalidate", and the names of keys, or null for all.
  void deliver(const Value::Items& push);

 private:
  using List = std::vector<std::shared_ptr<Tracker>>;

  bool is_told_of(std::string_view prefix) const noexcept;
  std::vector<std::string> wanted() const;
  List told() const;
  static void tell(const List& trackers, Message::Kind kind, const std::string& why = {});
  bool forget(const Tracker& tracker) noexcept;
  void ask_if(bool stale);

  mutable std::mutex mutex_;
  List all_;
  std::atomic<bool> any_{false};
  std::vector<std::string> told_;  // prefixes, by the server on this connection
  std::uint64_t connection_ = 0;
  bool stale_ = false;   // something has changed since the last question
  bool asking_ = false;  // one is under way
};

}  // namespace sluice::redis
