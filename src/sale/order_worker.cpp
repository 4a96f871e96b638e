#include "sluice/order_worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>

#include "base/random.hpp"
#include "sale/order_queue.hpp"
#include "sale/pause.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice {
namespace {

/// Host and process for whoever looks at XINFO CONSUMERS; the random part keeps two workers of one process apart, and
/// a restarted container from its predecessor with the same process id.
std::string make_consumer_name() {
  char host[256] = "unknown";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}:{}", host, ::getpid(), random_hex_128().substr(0, 12));
}

void check(const OrderWorkerOptions& options) {
  constexpr std::size_t largest_batch = 4000;  // ids in one script: Lua's unpack ends at 8000
  if (options.batch < 1 || options.batch > largest_batch)
    throw Error{Errc::bad_argument, fmt::format("a worker's batch is {}, it must be 1 to {}", options.batch, largest_batch)};
  if (options.claim_after.count() < 1 || options.idle_wait.count() < 1 || options.first_pause.count() < 1 ||
      options.longest_pause < options.first_pause || options.most_deliveries < 1)
    throw Error{Errc::bad_argument, "a worker's times and most_deliveries must be positive, and longest_pause not below first_pause"};
}

/// What trying again cannot mend.
bool is_final(const Error& failure) noexcept {
  switch (failure.errc()) {
    case Errc::bad_argument:
    case Errc::closed:
    case Errc::config_mismatch:
    case Errc::wrong_type: return true;
    default: return false;
  }
}

}  // namespace

class OrderWorker::Impl {
 public:
  Impl(Store& store, const Sale& sale, OrderStore& orders, OrderWorkerOptions options)
      : clock_(store.clock()),
        sale_(sale.definition()),
        orders_(orders),
        options_(options),
        queue_(store, sale_.name, make_consumer_name()),
        pause_(clock_, options.first_pause, options.longest_pause) {}

  void work(const std::stop_token& stop, bool until_empty);
  WorkerProgress progress() const {
    const std::lock_guard lock{mutex_};
    return progress_;
  }
  const std::string& consumer() const noexcept { return queue_.consumer(); }

 private:
  using Entries = std::vector<OrderEntry>;

  template <class Do>
  bool attempt(const std::stop_token& stop, Do&& work);
  void note_failure(const Error& failure);

  Entries take(const std::stop_token& stop, bool may_wait);
  Entries claim(const std::stop_token& stop);
  void bring_in(Entries entries, const std::stop_token& stop);
  InsertResult insert(const std::vector<Order>& orders, const std::vector<std::string>& ids);
  void bury(const std::string& id, const std::string& reason);

  template <class Change>
  void record(Change&& change) {
    const std::lock_guard lock{mutex_};
    change(progress_);
  }

  Clock& clock_;
  const SaleDefinition sale_;
  OrderStore& orders_;
  const OrderWorkerOptions options_;
  OrderQueue queue_;
  Pause pause_;

  std::vector<std::string> committed_;  // in the database, not yet acknowledged
  bool was_idle_ = false;
  SteadyTime next_claim_{};
  std::string claim_from_ = "0-0";
  SteadyTime kept_at_{};

  mutable std::mutex mutex_;
  WorkerProgress progress_;
};

void OrderWorker::Impl::work(const std::stop_token& stop, bool until_empty) {
  next_claim_ = clock_.steady();
  bool ready = attempt(stop, [&] { orders_.add_sale(sale_.name, sale_.stock); });
  while (ready && !stop.stop_requested()) {
    Entries entries;
    ready = attempt(stop, [&] { entries = take(stop, !until_empty); });
    if (entries.empty() && until_empty) break;
    bring_in(std::move(entries), stop);
  }
  try {  // once is enough: what is not acknowledged here is claimed, found in the database and acknowledged then
    queue_.acknowledge(committed_);
    committed_.clear();
    queue_.leave();
  } catch (const Error& failure) {
    note_failure(failure);
  }
}

/// Repeats `work` until it succeeds. False: `stop` came first.
template <class Do>
bool OrderWorker::Impl::attempt(const std::stop_token& stop, Do&& work) {
  for (;;) {
    try {
      work();
      pause_.reset();
      return true;
    } catch (const Error& failure) {
      if (is_final(failure)) throw;
      note_failure(failure);
    }
    if (!pause_.wait(stop)) return false;
  }
}

void OrderWorker::Impl::note_failure(const Error& failure) {
  log(LogLevel::warning, fmt::format("sale '{}': orders wait, the worker tries again: {}", sale_.name, failure.message()));
  record([&](WorkerProgress& progress) {
    ++progress.failures;
    progress.last_failure = failure.message();
  });
}

/// The next entries to bring in; acknowledges the last ones on the way.
OrderWorker::Impl::Entries OrderWorker::Impl::take(const std::stop_token& stop, bool may_wait) {
  if (clock_.steady() >= next_claim_)
    if (auto entries = claim(stop); !entries.empty()) return entries;

  Entries entries;
  if (!committed_.empty() || !was_idle_ || !may_wait) {
    entries = queue_.acknowledge_and_read(committed_, options_.batch);
    committed_.clear();
  }
  if (entries.empty() && may_wait && !stop.stop_requested()) entries = queue_.read(options_.batch, options_.idle_wait);
  was_idle_ = entries.empty();
  return entries;
}

/// Entries of dead workers.
OrderWorker::Impl::Entries OrderWorker::Impl::claim(const std::stop_token& stop) {
  auto claimed = queue_.claim(options_.claim_after, claim_from_, options_.batch);
  claim_from_ = claimed.next;
  if (claim_from_ == "0-0") next_claim_ = clock_.steady() + options_.claim_after / 2;
  record([&](WorkerProgress& progress) { progress.claimed += claimed.entries.size(); });

  Entries alive;
  for (std::size_t i = 0; i < claimed.entries.size(); ++i) {
    if (claimed.deliveries[i] <= options_.most_deliveries) {
      alive.push_back(std::move(claimed.entries[i]));
      continue;
    }
    // Workers may also have died of a database that was away. A write that succeeds now says that it is not.
    if (!attempt(stop, [&] { orders_.add_sale(sale_.name, sale_.stock); })) return alive;
    bury(claimed.entries[i].id, fmt::format("delivered {} times and never finished", claimed.deliveries[i]));
  }
  return alive;
}

void OrderWorker::Impl::bring_in(Entries entries, const std::stop_token& stop) {
  std::vector<Order> orders;
  std::vector<std::string> ids;
  orders.reserve(entries.size());
  ids.reserve(entries.size());
  for (auto& entry : entries) {
    if (entry.order) {
      orders.push_back(std::move(*entry.order));
      ids.push_back(std::move(entry.id));
    } else if (!attempt(stop, [&] { bury(entry.id, "its fields make no order"); })) {
      return;
    }
  }
  InsertResult result;
  kept_at_ = clock_.steady();
  if (!attempt(stop, [&] { result = insert(orders, ids); })) return;

  for (const auto& rejected : result.rejected) {
    auto& id = ids.at(rejected.index);
    if (!attempt(stop, [&] { bury(id, rejected.reason); })) return;
    id.clear();
  }
  std::erase(ids, std::string{});
  committed_.insert(committed_.end(), std::make_move_iterator(ids.begin()), std::make_move_iterator(ids.end()));
  count(metrics().sale_persisted, result.inserted);
  record([&](WorkerProgress& progress) {
    progress.inserted += result.inserted;
    progress.repeated += result.repeated;
  });
}

InsertResult OrderWorker::Impl::insert(const std::vector<Order>& orders, const std::vector<std::string>& ids) {
  // While the database is away these stay ours, so that no other worker takes them, and counts them, in vain.
  if (clock_.steady() >= kept_at_ + options_.claim_after / 3) {
    queue_.keep(ids);
    kept_at_ = clock_.steady();
  }
  return orders_.insert(sale_.name, orders);
}

void OrderWorker::Impl::bury(const std::string& id, const std::string& reason) {
  if (!queue_.bury(id, reason)) return;
  log(LogLevel::error, fmt::format("sale '{}': entry {} is a dead letter: {}", sale_.name, id, reason));
  count(metrics().sale_dead_letters);
  record([](WorkerProgress& progress) { ++progress.dead; });
}

OrderWorker::OrderWorker(Store& store, const Sale& sale, OrderStore& orders, OrderWorkerOptions options) {
  check(options);
  impl_ = std::make_unique<Impl>(store, sale, orders, options);
}

OrderWorker::~OrderWorker() = default;
void OrderWorker::run(std::stop_token stop) { impl_->work(stop, false); }
void OrderWorker::drain(std::stop_token stop) { impl_->work(stop, true); }
WorkerProgress OrderWorker::progress() const { return impl_->progress(); }
const std::string& OrderWorker::consumer() const noexcept { return impl_->consumer(); }

}  // namespace sluice
