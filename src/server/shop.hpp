/// The sales of a store, as a service keeps them: each has a worker that brings its orders into the
/// database, and recovers it where the store has lost something.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/answer_counts.hpp"
#include "server/offered_sale.hpp"
#include "sluice/clock.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"

namespace sluice::server {

struct ShopOptions {
  std::string orders = "sqlite:orders.db";  ///< the database, as open_order_store() takes it
  OrderWorkerOptions worker = {.recovers = true};
  /// Which sales are served beside those that are defined here; without a value all that store or
  /// database know, and those that others make.
  std::optional<std::set<std::string, std::less<>>> named = {};
  /// In how many buckets the stock of a sale lies that is defined here, by its name; others have
  /// none.
  std::map<std::string, std::int64_t, std::less<>> buckets = {};
  std::chrono::milliseconds patience{5'000};  ///< with a store or database that does not answer
  /// A call of the database by a worker, or of what is to be sent: OrderStoreLimits::answer.
  std::chrono::milliseconds longest_call{30'000};
  /// How often a change of the database is tried while nothing is wrong.
  std::chrono::milliseconds writes_every{5'000};
};

/// What a shop needs.
enum class Needed : std::uint8_t { store, database };

/// One sale and its worker, or the workers of its buckets. An archived one has no worker.
class Offer {
 public:
  /// `orders` is the worker's; those of buckets open their own. `blocks` is in place of
  /// OrderWorkerOptions::blocks.
  Offer(Store& store, OfferedSale sale, OrderStore& orders, const ShopOptions& options,
        bool blocks);
  ~Offer();
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  OfferedSale& sale() noexcept { return sale_; }
  const std::string& name() const noexcept { return sale_.name(); }

  void begin_work();
  void stop();      ///< and none begins again
  void end_work();  ///< the same, after the batch under way
  /// Why the worker cannot go on without somebody's help; empty: it works, or there is none.
  std::string trouble() const;
  /// Begins again where trouble ended it; a worker that has begun has no trouble.
  void work_again();
  /// Of all its workers so far.
  WorkerProgress progress() const;
  /// Of this process.
  AnswerCounts& answers() noexcept { return answers_; }
  /// An order that is on its way to the database, or a dead letter, by number or id. All that are
  /// there are read; blocks.
  std::optional<SaleOrder> find_on_its_way(std::string_view word);

 private:
  using AskProgress = std::function<WorkerProgress()>;

  void work(const std::stop_token& stop);
  template <class Worker>
  void run(Worker worker, const std::stop_token& stop);
  void show(AskProgress progress);
  void end(std::string trouble);

  Store& store_;
  OfferedSale sale_;
  OrderStore& orders_;
  const ShopOptions& options_;
  const OrderWorkerOptions worker_;
  AnswerCounts answers_;
  mutable std::mutex mutex_;
  std::string trouble_;      // guarded by mutex_; of the worker that ended
  std::string said_;         // guarded by mutex_; the last trouble in the log
  bool has_ended_ = false;   // guarded by mutex_; by trouble
  AskProgress progress_;     // guarded by mutex_; while a worker works
  WorkerProgress ended_;     // guarded by mutex_; of those that ended
  SteadyTime began_{};       // guarded by mutex_
  bool is_stopped_ = false;  // guarded by mutex_
  std::jthread thread_;      // guarded by mutex_
};

/// A sale with buckets is one offer, of the name of the whole. Its buckets are not offered: who
/// bought at each of them would have more than the limit of a buyer.
///
/// Threads: any. REQUIRES: the store lives longer.
class Shop {
 public:
  /// Takes in what is to be served of what store and database know, and defines `sales`, or joins
  /// them where they are there; all are checked before any is made. Throws Error where the database
  /// cannot be opened; config_mismatch where the orders of a sale that is named go into another
  /// database, or come from another store; bad_argument where one that is named is not there; and
  /// what Sale::create() throws.
  Shop(Store& store, ShopOptions options, std::span<const SaleDefinition> sales = {});
  ~Shop();
  Shop(const Shop&) = delete;
  Shop& operator=(const Shop&) = delete;

  /// Null: there is none of that name, or `trouble_of` says why it cannot be sold.
  std::shared_ptr<Offer> find(std::string_view name) const;
  std::vector<std::shared_ptr<Offer>> all() const;
  /// Why a sale that store or database know cannot be loaded; empty: it can be, or nobody knows it.
  std::string trouble_of(std::string_view name) const;
  /// Sales that store or database know and that are not sold here, and why not; as of the last
  /// look.
  std::map<std::string, std::string, std::less<>> not_served() const;

  /// Tells the workers to end after the batch under way; the destructor waits for them.
  void stop();

  /// Finds sales that other processes made, and begins again where trouble ended a worker. Blocks.
  void look();
  /// Empty: the last look found nothing wrong with it. Else what, or that it does not answer.
  std::string trouble(Needed with) const;
  /// Why sales cannot be loaded, by name.
  std::map<std::string, std::string, std::less<>> troubles() const;

  Store& store() const noexcept { return store_; }
  const ShopOptions& options() const noexcept { return options_; }

  /// Throws Error{config_mismatch} where the database has the sale from a store, and this one, at
  /// `place`, is not there yet.
  static void need_store(OrderStore& orders, const std::string& sale, const std::string& place);

 private:
  enum class At : std::uint8_t { start, later };

  void define(std::span<const SaleDefinition> sales);
  void check(const SaleDefinition& sale);
  void create(const SaleDefinition& sale);
  std::int64_t buckets_of(const std::string& sale) const;
  std::vector<std::string> names();
  bool is_named(std::string_view name) const;
  void list_again();
  void shut_what_is_sold_elsewhere();
  void look_at_archived(const SaleDefinition& sale);
  void take_in(const std::string& name, At when);
  std::shared_ptr<Offer> load(const std::string& name);
  OfferedSale load_whole(Sale part);
  bool may_block(OfferedSale& next) const;
  void add(std::shared_ptr<Offer> offer);
  void note(std::string_view name, const std::string& trouble);
  /// `names`: sorted.
  void forget_what_is_gone(const std::vector<std::string>& names);
  void note_step(Needed with);
  void look_at(Needed with, const std::function<void()>& step);
  void look_at_sales();
  void try_to_write();

  Store& store_;
  const ShopOptions options_;
  std::mutex looking_;
  std::unique_ptr<OrderStore> orders_;          // guarded by looking_
  std::set<std::string, std::less<>> buckets_;  // guarded by looking_; of the wholes offered
  std::set<std::string> rolled_back_;           // guarded by looking_; archived, or buckets of such
  std::set<std::string, std::less<>> defined_;  // by this process
  std::int64_t listed_ = 0;                     // guarded by looking_; see list_again()
  SteadyTime writes_next_{};                    // guarded by looking_
  // Of all workers: of a thousand sales each would have sessions of its own.
  std::unique_ptr<OrderStore> orders_of_workers_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<Offer>, std::less<>> offers_;  // guarded by mutex_
  std::map<std::string, std::string, std::less<>> troubles_;           // guarded by mutex_
  std::set<std::string, std::less<>> others_;  // guarded by mutex_; not named
  std::array<std::string, 2> trouble_with_;    // guarded by mutex_; by Needed
  /// Guarded by mutex_; since when the step of a look that is under way waits, and for which.
  std::optional<std::pair<SteadyTime, Needed>> waits_;
};

}  // namespace sluice::server
