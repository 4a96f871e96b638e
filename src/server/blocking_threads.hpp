/// Threads for work that waits for a database, so that no loop does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/order_store.hpp"

namespace sluice::server {

struct BlockingLimits {
  std::size_t threads = 5;
  std::size_t threads_of_a_sale = 4;      ///< one whose rows somebody has locked holds up no other
  std::size_t waiting = 1000;             ///< pieces of work of all
  std::size_t waiting_of_one = 4;         ///< of one subject, of which one is done at a time
  std::chrono::milliseconds call{5'000};  ///< OrderStoreLimits::answer of each connection
  std::chrono::milliseconds answer{7'000};  ///< what in_background() waits for the whole work
  Errc late = Errc::database;               ///< what work fails with that takes longer
};

/// Threads: any. Each thread of it has a connection of its own, made when it is first needed.
class BlockingThreads {
 public:
  using Work = std::function<void(OrderStore&)>;
  /// The connection of the thread, made when it is asked for.
  using Orders = std::function<OrderStore&()>;
  using LazyWork = std::function<void(const Orders&)>;
  enum class Accepted { yes, subject_has_too_many, full, stopping };

  BlockingThreads(std::string orders_url, BlockingLimits limits = {});
  /// Drops what has not begun, and waits for what has.
  ~BlockingThreads();
  /// Drops what has not begun; nothing is accepted from now on.
  void stop();
  BlockingThreads(const BlockingThreads&) = delete;
  BlockingThreads& operator=(const BlockingThreads&) = delete;

  /// Does it soon, after what the same subject asked for before: one who asks for much holds up no
  /// one else. Work that is not accepted, or dropped at the end, is destroyed: what it would have
  /// answered with says so. What it throws is given to `failed`, as is that there is no connection.
  /// `sale` is the one whose rows it asks for; empty: those of none, or of any. `most_waiting` is
  /// in place of BlockingLimits::waiting_of_one.
  Accepted run(const std::string& subject, Work work,
               std::function<void(const std::exception&)> failed, const std::string& sale = {},
               std::optional<std::size_t> most_waiting = {});
  /// The same of work that may do without the database. What is not done `within` that time fails
  /// with Error{database}: of work that has begun the effect is unknown, it goes on, and `failed`
  /// may be called once more, by another thread; other work is not begun any more.
  Accepted run_lazily(const std::string& subject, LazyWork work,
                      std::function<void(const std::exception&)> failed,
                      const std::string& sale = {}, std::optional<std::size_t> most_waiting = {},
                      std::optional<std::chrono::milliseconds> within = {});
  const BlockingLimits& limits() const noexcept { return limits_; }

 private:
  struct Piece {
    LazyWork work;
    std::function<void(const std::exception&)> failed;
    std::string sale;
    SteadyTime due = SteadyTime::max();
  };
  using SharedPiece = std::shared_ptr<const Piece>;
  struct Subject {
    std::deque<SharedPiece> pieces;
    bool busy = false;  // one of its pieces is being done
  };

  void serve(const std::stop_token& stop);
  bool may_begin(const std::string& subject) const;
  void finish(const std::string& subject, const Piece& piece);
  void oversee(const std::stop_token& stop);
  bool take_back(const SharedPiece& piece);

  const std::string orders_url_;
  const BlockingLimits limits_;
  std::mutex mutex_;
  std::condition_variable_any ready_there_;
  std::unordered_map<std::string, Subject> subjects_;  // guarded by mutex_
  std::deque<std::string> ready_;  // guarded by mutex_; subjects with pieces and nothing being done
  std::unordered_map<std::string, std::size_t> threads_of_;  // guarded by mutex_; of each sale
  std::size_t waiting_ = 0;                                  // guarded by mutex_
  bool stopping_ = false;                                    // guarded by mutex_
  std::condition_variable_any due_there_;
  std::multimap<SteadyTime, SharedPiece> due_;  // guarded by mutex_; not done yet
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::server
