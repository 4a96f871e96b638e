/// The sessions that a store has with its database, and what runs in them: a transaction, a
/// snapshot, or single statements. A session that failed is thrown away whole: that ends its
/// transaction and leaves no statement half done.
///
/// Threads: any; each call has a session for itself, and waits while all are taken.
#pragma once

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "sale/database_failure.hpp"
#include "sale/sql/dialect.hpp"
#include "sale/sql/sale_links.hpp"
#include "sale/sql/session_watch.hpp"
#include "sluice/clock.hpp"

namespace sluice::sale {

/// An open session. Nothing is prepared in it: SOCI sends the first values of a prepared statement
/// with use(vector) again and again to PostgreSQL and MySQL (SOCI #910).
struct Connection {
  soci::session sql;
  bool is_new = true;       ///< it has done nothing yet
  bool committing = false;  ///< a COMMIT is under way
  bool is_cut = false;      ///< its server did not answer in time
  /// Of its socket: the client library closes its own one where it likes. -1: there is none.
  Descriptor line = {};
  std::map<std::string, long long, std::less<>> sale_ids;
  SaleLinks* links = nullptr;
  std::vector<std::pair<std::string, std::string>>
      counted;  ///< sales, and their marks if it commits
};

class SqlSessions {
 public:
  /// Makes the schema, or brings it up to date.
  SqlSessions(SqlDialect dialect, std::chrono::milliseconds longest_call);

  const SqlDialect& dialect() const noexcept { return dialect_; }
  SaleLinks& links() noexcept { return links_; }

  /// Runs `work(Connection&)`, and runs it once more where the database has undone it: `work` sets
  /// what it returns, and adds to nothing outside itself.
  template <class Do>
  auto guarded(Do&& work);
  /// Runs `work` in a transaction; commits when it returns true, else rolls back.
  template <class Do>
  bool in_transaction(Do&& work) {
    return begun(dialect_.begin, std::forward<Do>(work));
  }
  /// The same for one that only reads.
  template <class Do>
  void in_snapshot(Do&& read) {
    begun(dialect_.begin_reading, [&](Connection& at) {
      read(at);
      return false;
    });
  }

 private:
  /// A session of the pool. It goes back unless it is dropped.
  class Lease {
   public:
    Lease(SqlSessions& pool, std::unique_ptr<Connection> connection)
        : pool_(pool), connection_(std::move(connection)) {}
    ~Lease() { pool_.give_back(std::move(connection_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    Connection& operator*() const noexcept { return *connection_; }
    Connection* operator->() const noexcept { return connection_.get(); }
    void drop() noexcept { connection_.reset(); }

   private:
    SqlSessions& pool_;
    std::unique_ptr<Connection> connection_;
  };

  /// How often a call was undone by the database, and what to do about it.
  class Patience {
   public:
    explicit Patience(SqlSessions& pool)
        : pool_(pool), give_up_(system_clock().steady() + pool.longest_repeating()) {}
    /// Throws what the caller is to hear, or returns when `work` may run again.
    void after(const soci::soci_error& failure, Lease& lease);

   private:
    SqlSessions& pool_;
    int repeats_ = 0;
    const SteadyTime give_up_;
  };

  template <class Do>
  bool begun(const std::vector<std::string_view>& begin, Do&& work);

  std::unique_ptr<Connection> take();
  void give_back(std::unique_ptr<Connection> connection) noexcept;
  std::unique_ptr<Connection> connect();
  bool try_to_open(bool is_last_time);
  void begin(Connection& at, bool is_patient);
  void limit(Connection& at) const;
  std::string no_answer() const;
  std::chrono::nanoseconds longest_repeating() const;
  void drop_idle() noexcept;
  DatabaseFailure error_of(const std::string& message, const SqlFailure& why, Effect effect) const;

  const SqlDialect dialect_;
  SaleLinks links_;
  const std::chrono::milliseconds longest_call_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t taken_ = 0;
  bool was_open_ = false;
};

template <class Do>
auto SqlSessions::guarded(Do&& work) {
  Patience patience{*this};
  for (;;) {
    Lease lease{*this, take()};
    errno = 0;  // for classify()
    try {
      const SessionWatch::Turn turn{lease->line.number(), longest_call_, lease->is_cut};
      if constexpr (std::is_void_v<decltype(work(*lease))>) {
        work(*lease);
        lease->is_new = false;
        return;
      } else {
        auto result = work(*lease);
        lease->is_new = false;
        return result;
      }
    } catch (const soci::soci_error& failure) {
      patience.after(failure, lease);
    } catch (const Error& failure) {
      lease.drop();
      if (failure.errc() != Errc::corrupt) throw;
      throw DatabaseFailure{failure.errc(), failure.message(), failure.effect()};
    } catch (...) {
      lease.drop();
      throw;
    }
  }
}

template <class Do>
bool SqlSessions::begun(const std::vector<std::string_view>& begin, Do&& work) {
  return guarded([&](Connection& at) {
    if (dialect_.check_presence) dialect_.check_presence();
    for (const auto statement : begin) at.sql << std::string{statement};
    at.counted.clear();
    if (!work(at)) {
      at.sql.rollback();
      return false;
    }
    at.committing = true;
    at.sql.commit();
    at.committing = false;
    for (const auto& [sale, mark] : at.counted) links_.raise(sale, mark);
    if (dialect_.check_presence) dialect_.check_presence();
    return true;
  });
}

}  // namespace sluice::sale
