/// What the database has of sales, for a page that shows it.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/order_store.hpp"

namespace sluice::server {

/// One thread asks, by a connection of its own, and only after somebody wanted it: a slow database
/// holds up neither its readers nor a sale. To count the orders of a sale takes longer the more
/// there are, so the next round comes ten times as long after one as that took, and `every` at
/// least.
///
/// Threads: any.
class DatabaseFigures {
 public:
  DatabaseFigures(std::string orders_url, std::chrono::milliseconds every);
  ~DatabaseFigures();
  DatabaseFigures(const DatabaseFigures&) = delete;
  DatabaseFigures& operator=(const DatabaseFigures&) = delete;
  void stop();

  /// Asks for these soon, if what is known of them is due. Never blocks.
  void want(std::vector<std::string> sales);

  struct Known {
    std::map<std::string, OrderFigures, std::less<>> sales;
    std::optional<std::int64_t> strays;  ///< payments that wait, of sales that nobody knows
    std::string trouble;                 ///< why the last round failed; empty: it did not
  };
  /// Of the last round; nothing where that is long ago, or failed.
  std::shared_ptr<const Known> known() const;
  /// Of the last round within five minutes: for who asks once in a minute.
  std::shared_ptr<const Known> latest() const;

 private:
  void work(const std::stop_token& stop);
  void ask(std::unique_ptr<OrderStore>& orders, const std::vector<std::string>& sales);

  const std::string orders_url_;
  const std::chrono::milliseconds every_;
  mutable std::mutex mutex_;
  std::condition_variable_any wanted_there_;
  std::vector<std::string> wanted_;     // guarded by mutex_; empty: nobody wants anything
  std::shared_ptr<const Known> known_;  // guarded by mutex_
  SteadyTime ended_{};                  // guarded by mutex_; when it was made
  SteadyTime next_{};                   // guarded by mutex_; not before then
  SteadyTime good_until_{};             // guarded by mutex_; of known_
  std::jthread thread_;
};

}  // namespace sluice::server
