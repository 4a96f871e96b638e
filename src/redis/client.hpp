/// What a RedisStore shares with the calls under way, which may outlive it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "redis/channels.hpp"
#include "redis/link.hpp"
#include "redis/reactor.hpp"
#include "redis/redis_store.hpp"

namespace sluice::redis {

class Client {
 public:
  explicit Client(RedisOptions options);

  const RedisOptions& options() const noexcept { return options_; }
  Link& link() noexcept { return *link_; }
  Channels& channels() noexcept { return channels_; }

  /// Starts the thread, which keeps `self` while it runs, and waits for the server's greeting.
  void open(std::shared_ptr<Client> self);
  /// Every call under way ends with Errc::closed. The thread has ended after this, unless it is the
  /// caller.
  void close();

  /// A connection of one's own for a blocking command.
  class Loan {
   public:
    /// Throws Error when all are out.
    explicit Loan(Client& client) : client_(client), link_(client.lend()) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { client_.take_back(std::move(link_)); }

    Link& link() noexcept { return *link_; }

   private:
    Client& client_;
    std::shared_ptr<Link> link_;
  };

 private:
  static constexpr std::size_t most_spare = 4;

  std::shared_ptr<Link> lend();
  void take_back(std::shared_ptr<Link> link);

  const RedisOptions options_;
  Channels channels_;
  Reactor reactor_;
  const std::shared_ptr<Link> link_;

  std::mutex mutex_;
  bool closed_ = false;
  std::vector<std::shared_ptr<Link>> lent_;
  std::vector<std::shared_ptr<Link>> spare_;
};

}  // namespace sluice::redis
