/// How everything stands, for pages that show it live.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "http/responder.hpp"
#include "server/database_figures.hpp"
#include "server/operate_text.hpp"
#include "server/operators.hpp"
#include "server/queue_api.hpp"
#include "server/shop.hpp"

namespace sluice::server {

/// Of all parts of a sale. Empty: not all are known.
std::optional<OrderFigures> figures_of(OfferedSale& sale, const DatabaseFigures::Known& known);
/// Under which names the database has their orders.
std::vector<std::string> rows_of(const std::vector<std::shared_ptr<Offer>>& offers);

struct SnapshotLimits {
  std::chrono::milliseconds every{1000};           ///< the store is asked, and pages are told
  std::chrono::milliseconds database_every{2000};  ///< the database is asked
  std::size_t pages = 64;                          ///< that listen, and that wait for an answer
  std::size_t pages_of_one = 16;                   ///< operator, so that the others see something
  std::size_t sales = 100;                         ///< shown at a time
  /// Bytes: an event stream takes no more at a time (http::Limits::unsent).
  std::size_t size = std::size_t{48} << 10;
};

/// One thread asks the store, and one the database, while somebody looks: how many do, makes no
/// difference to either. While nobody looks nothing is asked.
///
/// Guarantee: a snapshot is `every` old at most when it is sent; what it has of the database, as
///   DatabaseFigures says. One that would be too large leaves sales out and says so (`truncated`);
///   those that are archived are the first to be left out.
/// Threads: any. REQUIRES: what it is made of lives longer.
class Snapshots {
 public:
  struct Load {
    std::string trouble;
    std::int64_t connections = 0;
    std::uint64_t requests = 0;
  };
  using AskLoad = std::function<Load()>;

  Snapshots(Shop& shop, const QueueApi& queue, EndedLogins& ended, AskLoad load,
            SnapshotLimits limits);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;
  /// Nobody is told anything from now on.
  void stop();

  /// Answers with the present snapshot.
  void answer(http::Responder respond, Operator who);
  /// Answers with a stream of them, until his login ends.
  void stream(http::Responder respond, Operator who);

  std::size_t pages() const;
  /// What it has of the database.
  DatabaseFigures& database() noexcept { return database_; }

 private:
  struct Page {
    http::EventStream stream;
    Operator who;
    bool is_new = true;  ///< was told nothing yet
  };
  struct Waiting {
    http::Responder respond;
    Operator who;
    SteadyTime since{};
  };
  struct Before {  // of a sale, at the snapshot before
    std::int64_t orders = 0;
    std::int64_t let_in = 0;
  };

  void work(const std::stop_token& stop);
  bool wait(const std::stop_token& stop);
  void look();
  std::vector<WatchedSale> look_at_sales();
  void add_rates(std::chrono::nanoseconds since);
  void add_figures(const DatabaseFigures::Known& known);
  std::string make();
  void tell(const std::string& snapshot, bool is_tick);
  bool somebody_looks() const { return !pages_.empty() || !waiting_.empty(); }
  bool somebody_is_new() const;
  bool has_room_for(const Operator& who) const;
  void ask_for_logouts();
  bool has_ended(const Operator& who) const;

  Shop& shop_;
  const QueueApi& queue_;
  EndedLogins& ended_;
  const AskLoad load_;
  const SnapshotLimits limits_;
  const std::string name_;
  const SteadyTime began_;
  DatabaseFigures database_;

  // Of the thread alone.
  std::set<std::string, std::less<>> archived_;  // which never change again
  std::map<std::string, Before, std::less<>> before_;
  std::uint64_t requests_before_ = 0;
  std::vector<WatchedSale> views_;
  WatchedProcess process_;
  std::size_t sales_in_all_ = 0;
  std::optional<SteadyTime> looked_;  // when these were made
  SteadyTime next_tick_{};            // when all pages are told again
  bool is_whole_ = false;             // the last snapshot has what the database says

  mutable std::mutex mutex_;
  std::condition_variable_any somebody_there_;
  std::vector<Page> pages_;       // guarded by mutex_
  std::vector<Waiting> waiting_;  // guarded by mutex_
  bool stopping_ = false;         // guarded by mutex_
  std::jthread thread_;
};

}  // namespace sluice::server
