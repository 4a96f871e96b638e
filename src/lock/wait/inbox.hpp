/// Where this process hears that a hold was given to it: one channel for a Store's life, whatever
/// the number of locks and waiters. Where keys are sharded (Store::is_sharded) a script can publish
/// in the slot of its keys alone: there it is one channel for each slot in which the process waits.
///
/// A message is "grant REQUEST TOKEN TIME TTL" (the hold of that request is in force since TIME of
/// the server's clock, for TTL ms), "look REQUEST MS" (look at the lock in so many ms), or "gone"
/// (this process was taken for dead, and has lost its places in a queue: all waits look). Each wait
/// has a Subscription under its request id. After a gap in the messages every wait looks at its
/// lock at once; and after this process stood still, since the server may have dropped its tickets.
///
/// The server counts on a look of this process at each queue in which it stands, about once a
/// second (lock/wait/queue): the first of its waits there looks, and the others rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/process.hpp"
#include "lock/hold/pending_releases.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// What a wait hears.
struct InboxMessage {
  enum class Kind {
    grant,    ///< the hold is given
    look,     ///< look at the lock again, `in` from now
    recheck,  ///< of this process: ask `wanted` again, see QueuedWait::stand
  };
  Kind kind = Kind::recheck;
  FencingToken token{};
  std::chrono::milliseconds at{};   ///< of a grant: the server's time
  std::chrono::milliseconds ttl{};  ///< of a grant
  std::chrono::milliseconds in{};   ///< of a look
};

/// Threads: any.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  Inbox(Store& store, std::string channel);
  ~Inbox();

  /// Subscribes, the first time. What is sent to the channel after this is heard. False: not by
  /// `until` (steady). Throws what listen throws; the next call tries again.
  Task<bool> open(SteadyTime until);
  bool is_open() const;
  const std::string& channel() const noexcept { return channel_; }
  Store& store() const noexcept { return store_; }
  /// When a request was sent, and the server's time in the reply to it: it was not earlier.
  struct TimeOfServer {
    SteadyTime sent{};
    std::chrono::milliseconds time{};
  };
  /// What the latest reply to any wait said.
  void note_time(const TimeOfServer& heard);
  TimeOfServer time_of_server() const;
  /// Every wait looks at its lock at once: this process may have stood still.
  void look_at_all();
  /// The wait of that request, if there is one.
  void look_at(std::string_view request);
  /// See Subscription::may_ask(). Tests set less.
  static inline std::atomic<std::size_t> most_asking = 128;

  /// Receives the messages to one request, while it lives. One coroutine at a time may wait.
  class Subscription {
   public:
    Subscription(std::shared_ptr<Inbox> inbox, std::string request);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    const std::string& request() const noexcept { return request_; }
    Inbox& inbox() const noexcept { return *inbox_; }
    /// The next call; empty when `until` (steady) passes first.
    Task<std::optional<InboxMessage>> next(SteadyTime until);
    /// Any thread.
    void post(const InboxMessage& call);
    /// The wait stands in that queue of the server, and in no other. True: it is the first of this
    /// process there, and has to look at the lock as soon as the server said. False: it may rest;
    /// it is told to look when it has become the first.
    /// `asked`: when the server was asked that said so. Where that is long ago this process stood
    /// still, and its tickets may have left the queue meanwhile: then none may rest.
    bool stand_in(std::string_view queue, SteadyTime asked);
    /// The other waits of this process in its queue look at once: the messages to them, if there
    /// were any, were not heard.
    void let_others_look();
    /// Whether its question to the server may be sent now: of this process `most_asking` are under
    /// way at most, so that those of thousands of waits do not outlast the time of a call, nor
    /// delay what is granted meanwhile. False: it is told to look when its turn has come. Waits
    /// that stand in a queue go first, since the server counts on their looks; first come first.
    /// True: asked() says that the answer is there.
    bool may_ask(bool stands);
    void asked();

   private:
    friend class Inbox;
    enum class Turn : std::uint8_t { none, awaited, here };
    using Queue = std::list<Subscription*>;
    using ToAsk = std::map<std::pair<bool, std::uint64_t>, Subscription*>;  // by newcomer, number
    // REQUIRES: the inbox's mutex is held
    void leave_queue();
    void first_looks_soon();

    std::string queue_;  // under the inbox's mutex, with what follows
    Queue::iterator place_;
    bool rests_ = false;
    Turn turn_ = Turn::none;
    ToAsk::iterator turn_place_;  // where it is awaited
    std::uint64_t number_ = 0;    // of the waits of this inbox, by when they came
    const std::shared_ptr<Inbox> inbox_;
    const std::string request_;
    std::mutex mutex_;
    std::deque<InboxMessage> calls_;
    std::shared_ptr<Completion> arrival_;
  };

 private:
  enum class ChannelState { closed, opening, open };
  Task<void> subscribe();
  void hear(const Message& message);
  bool call(std::string_view request, std::string_view verb, std::string_view rest);
  void tick();
  void set_timer();
  void forget_parent();
  void forget_time_of_server();
  void pass_turn();

  Store& store_;
  Clock& clock_;  // outlives the Store
  const std::string channel_;
  const std::shared_ptr<PendingReleases> pending_releases_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, Subscription*> boxes_;
  std::map<std::string, Subscription::Queue, std::less<>> queues_;
  std::size_t asking_ = 0;
  Subscription::ToAsk to_ask_;  // when it is their turn
  std::uint64_t last_number_ = 0;
  TimeOfServer time_of_server_;
  Clock::TimerId timer_ = 0;
  bool ticking_ = false;
  SteadyTime last_tick_{};
  unsigned forks_ = fork_count();
  std::atomic<ChannelState> channel_state_ = ChannelState::closed;  // written under the mutex
  std::exception_ptr failure_;
  std::vector<std::shared_ptr<Completion>> opening_waiters_;
  Listener listener_;
};

/// The inboxes of this process on one Store, by what it waits for. Threads: any.
class Inboxes {
 public:
  explicit Inboxes(Store& store);

  /// Of what has this name. The same as before while a caller has it; and an inbox that was
  /// forgotten comes again with the same channel.
  std::shared_ptr<Inbox> of(std::string_view name);
  /// Of that one, without making it.
  std::string channel_of(std::string_view name) const;
  /// Whether it is there and open.
  bool is_open(std::string_view name);

 private:
  std::string channel_in(std::uint16_t slot) const;

  Store& store_;
  const std::string channel_;
  const std::shared_ptr<Inbox> only_;  // null: there is one for each slot
  std::mutex mutex_;
  std::map<std::uint16_t, std::shared_ptr<Inbox>> by_slot_;
  std::size_t full_ = 64;  // then those that nobody uses are closed
};

}  // namespace sluice::lock
