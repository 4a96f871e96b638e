/// What a RedisStore shares with the calls under way, which may outlive it.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/process.hpp"
#include "redis/channels.hpp"
#include "redis/durable_line.hpp"
#include "redis/link.hpp"
#include "redis/reactor.hpp"
#include "redis/redis_store.hpp"
#include "redis/trackers.hpp"
#include "store/callbacks.hpp"

namespace sluice::redis {

class Client : public std::enable_shared_from_this<Client> {
 public:
  explicit Client(RedisOptions options);
  /// Of one node of several, which share a thread and are heard together.
  struct Company {
    std::shared_ptr<Reactor> reactor;
    std::shared_ptr<Callbacks> callbacks;
    std::shared_ptr<Hearer> hearer;
  };
  Client(RedisOptions options, Company company);

  const RedisOptions& options() const noexcept { return options_; }
  /// This is a child of fork(): the threads, and any mutex that they hold, are the parent's.
  bool is_of_parent() const noexcept { return forks_ != fork_count(); }
  Reactor& reactor() noexcept { return reactor_; }
  Link& link() noexcept { return *link_; }
  Link& listener() noexcept { return *listener_; }
  Channels& channels() noexcept { return channels_; }
  Trackers& trackers() noexcept { return trackers_; }
  Callbacks& callbacks() noexcept { return *company_.callbacks; }

  /// Starts the thread, which keeps `self` while it runs.
  void start(std::shared_ptr<Client> self);
  /// In company: nothing is waited for, and the thread is another's to start and to stop.
  void join();
  /// Waits for the replies to calls that were sent, until none has come for 500 ms, and for what
  /// threads of the Store are inside of: it may give something back. Every call under way ends with
  /// Errc::closed then.
  /// The thread has ended after this, unless it is the caller.
  void close();
  /// The same, but for the thread; of several in one company, whose silent servers are waited for
  /// at the same time.
  static void leave(std::span<const std::shared_ptr<Client>> clients);
  /// The same at once, when nothing is under way.
  void abandon();

  /// A batch that ends with WAIT is under way, which may rightly take long.
  bool awaits_copies();
  /// All connections, in no order.
  std::vector<std::shared_ptr<Link>> links();

  /// A connection of one's own for a blocking command; first come, first served. Throws Error when
  /// all are out until `deadline`.
  Task<std::shared_ptr<Link>> borrow(SteadyTime deadline);
  void give_back(std::shared_ptr<Link> link);

  /// Where all batches go that end with this WAIT.
  std::shared_ptr<DurableLine> durable_line(const DurableLine::Wait& wait);

 private:
  static constexpr std::size_t most_spare = 4;
  static constexpr std::size_t most_durable_lines = 16;  // more only while they are in use
  struct Borrower {
    Completion called;
    std::shared_ptr<Link> link{};
  };

  using Links = std::vector<std::shared_ptr<Link>>;

  // REQUIRES: mutex_ is held
  std::shared_ptr<Link> lend();
  std::shared_ptr<Link> make_link(Link::Kind kind, std::chrono::milliseconds holds_up = {});
  void end_idle_durable_lines();
  void add(const std::shared_ptr<Link>& link);

  /// How often close() waits for a millisecond. Not how long: a process may stand still meanwhile.
  struct Patience {
    int quiet_rounds = 500;  ///< in a row, in which no reply came
    int rounds = 10'000;     ///< a coroutine may send for ever
  };
  void read_last(const Links& links, Patience& patience);
  /// Lends and connects nothing from now on. Its connections but the shared one.
  Links begin_to_leave(std::vector<std::shared_ptr<Borrower>>& borrowers);

  const RedisOptions options_;
  const unsigned forks_ = fork_count();
  Channels channels_;
  Trackers trackers_;
  const Company company_;
  Reactor& reactor_;
  Hearer& hearer_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<Link> listener_;

  std::mutex mutex_;
  bool closed_ = false;
  std::vector<std::shared_ptr<Link>> lent_;
  std::vector<std::shared_ptr<Link>> spare_;
  std::list<std::shared_ptr<Borrower>> borrowers_;  // in the order of their calls
  std::map<DurableLine::Wait, std::shared_ptr<DurableLine>> durable_lines_;
};

/// A borrowed connection, for a scope.
class Loan {
 public:
  Loan(std::shared_ptr<Client> client, std::shared_ptr<Link> link)
      : client_(std::move(client)), link_(std::move(link)) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() { client_->give_back(std::move(link_)); }

  Link& link() noexcept { return *link_; }

 private:
  const std::shared_ptr<Client> client_;
  std::shared_ptr<Link> link_;
};

}  // namespace sluice::redis
