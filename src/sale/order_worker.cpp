#include "sluice/order_worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/process.hpp"
#include "base/random.hpp"
#include "sale/differences.hpp"
#include "sale/order_queue.hpp"
#include "sale/settlement.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice {
namespace {

/// Host and process, for people who read XINFO CONSUMERS. The random part keeps two workers of one
/// process apart, and a restarted container from its predecessor with the same process id.
std::string make_consumer_name() {
  return fmt::format("{}:{}:{}", host_name(), ::getpid(), random_hex_128().substr(0, 12));
}

void check(const OrderWorkerOptions& options) {
  constexpr std::size_t largest_batch = 4000;  // ids in one script: Lua's unpack ends at 8000
  if (options.batch < 1 || options.batch > largest_batch)
    throw Error{Errc::bad_argument, fmt::format("a worker's batch is {}, it must be 1 to {}",
                                                options.batch, largest_batch)};
  if (options.claim_after.count() < 1 || options.idle_wait.count() < 1 ||
      options.first_pause.count() < 1 || options.longest_pause < options.first_pause ||
      options.most_deliveries < 1 || options.most_deliveries > 1000)
    throw Error{Errc::bad_argument,
                "a worker's times must be positive, longest_pause not below first_pause, and "
                "most_deliveries 1 to 1000"};
}

using namespace std::chrono_literals;

/// What goes on is said again so often.
constexpr auto pause_between_lines = 1min;

/// The sale has ended: there is nothing to work for any more.
struct IsArchived {};

/// Of an order that is not paid in time its buyer and those who wait hear within a second.
constexpr auto pause_between_deadlines = 500ms;
/// Each is a transaction, and orders wait meanwhile.
constexpr std::size_t most_settled = 100;

/// Workers that an order may end while it is tried alone. A kill seldom hits the same one twice.
constexpr std::int64_t most_tries_alone = 5;
/// New orders wait while some are tried alone.
constexpr auto longest_tries_alone = 100ms;

/// One script that looks at so many entries holds up a server for a millisecond.
constexpr std::size_t most_looked_at = 1000;

/// Where XAUTOCLAIM begins, and what it answers at the end.
constexpr std::string_view queue_start = "0-0";

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

/// A read under way while the worker is busy with the database. It acknowledges what was committed
/// before.
struct ReadAhead {
  explicit ReadAhead(Driver* driver) : finished(driver) {}

  std::vector<std::string> committed;
  Value reply;
  std::exception_ptr failure;
  Completion finished;
};

Task<void> carry_out(ReadAhead& ahead, sale::OrderQueue& queue, std::string mark,
                     std::size_t most) {
  try {
    auto reading = queue.acknowledge_and_read(ahead.committed, std::move(mark), most);
    ahead.reply = co_await reading;
  } catch (...) {
    ahead.failure = std::current_exception();
  }
  ahead.finished.complete();
}

Task<void> wait_for(ReadAhead& ahead) { co_await ahead.finished; }

/// How an order differs from the store's record of its request; empty: it does not, or there is
/// none.
std::string contradiction(const SaleOrder& order, std::optional<SaleOrder> record) {
  if (!record) return {};
  record->state = order.state;  // it may have ended meanwhile
  sale::Differences differences{1};
  if (differences.compare({}, *record, order)) return {};
  const auto first = differences.take().front();
  return fmt::format("the store's record of its request has another order: {} is {} there",
                     first.what, first.in_store);
}

}  // namespace

class OrderWorker::Impl {
 public:
  Impl(Store& store, const Sale& sale, OrderStore& orders, OrderWorkerOptions options)
      : store_(store),
        clock_(store.clock()),
        driver_(store.driver()),
        sale_(sale.definition()),
        orders_(orders),
        options_(options),
        keys_(sale_.name),
        queue_(store, sale_.name, make_consumer_name()),
        records_(store, sale_),
        pauses_(options.first_pause, options.longest_pause) {}

  void work(const std::stop_token& stop, bool until_empty);
  WorkerProgress progress() const {
    const std::lock_guard lock{mutex_};
    return progress_;
  }
  const std::string& consumer() const noexcept { return queue_.consumer(); }

 private:
  using Entries = std::vector<sale::OrderEntry>;

  void bring_in_all(const std::stop_token& stop, bool until_empty);
  void enter_sale();
  void leave();
  bool is_archived() const noexcept;
  void make_group();
  template <class Do>
  bool attempt(const std::stop_token& stop, Do&& work);
  /// After a failure. False: it is to stop.
  bool pause(const std::stop_token& stop);
  bool rest(std::chrono::nanoseconds time, const std::stop_token& stop);
  std::chrono::milliseconds pause_between_looks() const {
    return std::max<std::chrono::milliseconds>(options_.claim_after / 2, 1ms);
  }
  void note_failure(const Error& failure, std::string_view what_follows);
  void say(LogLevel level, std::string line);
  void count_failure(const Error& failure);

  Entries take(const std::stop_token& stop, bool may_wait);
  Entries reread();
  Entries take_over();
  Entries claim();
  void settle_some();
  void look_at_deadlines();
  struct Money {
    bool is_sound;  ///< no row was damaged
    bool has_some;  ///< payments, or deadlines that have passed
    bool has_more;  ///< there may be more of them
  };
  Money bring_in_money();
  void recover_if_needed();
  bool has_more() const noexcept { return settle_from_ || !suspects_.empty(); }
  void try_suspects(const std::stop_token& stop);
  bool try_alone(const std::string& id, std::int64_t tries, const std::stop_token& stop);
  void read_ahead();
  Entries await_read_ahead();
  bool bring_in(Entries entries, const std::stop_token& stop, bool reads_ahead = true);
  struct Known {
    std::vector<std::optional<SaleOrder>> records;  ///< of the requests of the entries' orders
    bool is_another = false;                        ///< the sale was created since it was entered
  };
  Known ask_store(const Entries& entries);
  std::string refuse(const SaleOrder& order, const std::optional<SaleOrder>& record) const;
  InsertResult insert(const std::vector<SaleOrder>& orders, const std::vector<std::string>& ids);
  void drop_all();
  bool begin_again(const std::stop_token& stop);
  void keep(const std::vector<std::string>& ids);
  void bury(const std::string& id, const std::string& reason);

  template <class Change>
  void record(Change&& change) {
    const std::lock_guard lock{mutex_};
    change(progress_);
  }

  Store& store_;
  Clock& clock_;
  Driver* const driver_;
  const SaleDefinition sale_;
  OrderStore& orders_;
  const OrderWorkerOptions options_;
  const sale::SaleKeys keys_;
  sale::OrderQueue queue_;
  sale::Records records_;
  Backoff pauses_;

  std::int64_t epoch_ = 0;              // of the entries that are read now
  std::string born_;                    // when the sale of the store was created
  std::vector<std::string> committed_;  // in the database, not yet acknowledged
  std::unique_ptr<ReadAhead> ahead_;
  SteadyTime next_claim_{};
  std::string claim_from_{queue_start};
  sale::OrderQueue::Suspects suspects_;  // of the last round of claims
  std::string adopt_from_;               // empty: claims come first
  /// Where entries may be pending for this worker that it does not have: it dropped them, or lost
  /// the reply that brought them. Empty: nowhere.
  std::string reread_from_;
  std::optional<sale::Settlement> settlement_;
  SteadyTime next_settling_{};
  SteadyTime next_look_at_deadlines_ = SteadyTime::max();  // of a sale that is paid for
  SteadyTime next_look_at_gate_{};
  std::optional<std::int64_t> settle_from_;  // empty: from the beginning, when it is time
  std::optional<SteadyTime> kept_at_;
  std::map<std::string, SteadyTime> said_;  // lines of the log, and when
  bool drains_ = false;
  bool group_is_lost_ = false;
  bool sale_is_gone_ = false;
  bool sale_is_lost_ = false;

  mutable std::mutex mutex_;
  WorkerProgress progress_;
};

void OrderWorker::Impl::work(const std::stop_token& stop, bool until_empty) {
  try {
    bring_in_all(stop, until_empty);
  } catch (const IsArchived&) {  // its stream has gone, and nothing is to be handed over
    log(LogLevel::info, fmt::format("sale '{}' is archived: its worker ends", sale_.name));
    if (ahead_) wait_for(*ahead_).get();
    return;
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

void OrderWorker::Impl::bring_in_all(const std::stop_token& stop, bool until_empty) {
  drains_ = until_empty;
  next_claim_ = next_settling_ = clock_.steady();
  bool ready = attempt(stop, [&] { enter_sale(); });
  while (ready && (!stop.stop_requested() || ahead_ || !reread_from_.empty())) {
    Entries entries;
    ready = attempt(stop, [&] { entries = take(stop, !until_empty); });
    if (entries.empty() && until_empty && !has_more()) break;
    if (!entries.empty()) ready = ready && bring_in(std::move(entries), stop);
  }
}

/// Enters the sale into the database, with its definition, and learns its epoch. Where the sale is
/// gone make_group() says so.
void OrderWorker::Impl::enter_sale() {
  auto entered = sale::enter(store_, sale_, orders_);
  sale_is_lost_ = entered.is_lost;
  if (sale_is_lost_)
    throw Error{Errc::server,
                fmt::format("sale '{0}' was lost in {1} and created again: {2} may have other "
                            "orders of the same requests, so that none gets in before 'sluice sale "
                            "recover {0}'",
                            sale_.name, store_.describe(), orders_.describe())};
  if (!entered.is_there) return;
  epoch_ = entered.epoch;
  born_ = std::move(entered.born);
}

void OrderWorker::Impl::leave() {
  try {  // once is enough: what is not acknowledged here is claimed, found in the database and
         // acknowledged then
    if (ahead_) await_read_ahead();  // the worker could not finish; what was read stays pending
    queue_.acknowledge(committed_, orders_.mark(sale_.name));
    committed_.clear();
    queue_.leave();
  } catch (const Error& failure) {
    note_failure(failure, "the worker ends, and another one brings in what it has read");
  }
}

/// Repeats `work` until it succeeds. False: `stop` came first.
template <class Do>
bool OrderWorker::Impl::attempt(const std::stop_token& stop, Do&& work) {
  bool is_doubtful = false;
  for (bool has_failed = false;; has_failed = true) {
    try {
      if (is_doubtful) sale::attach(store_, sale_, orders_);  // a backup may have been restored
      if (options_.recovers) recover_if_needed();
      if (group_is_lost_) make_group();
      work();
      pauses_.reset();
      if (has_failed) say(LogLevel::info, fmt::format("sale '{}': the worker goes on", sale_.name));
      return true;
    } catch (const Error& failure) {
      is_doubtful = failure.errc() == Errc::database;
      // Where the sale is sold in another store by now, nobody is to buy in this one.
      if (failure.errc() == Errc::config_mismatch) sale::attach(store_, sale_, orders_);
      if (sale::is_group_lost(failure) && !drains_ && is_archived()) throw IsArchived{};
      if (is_final(failure) || (drains_ && (sale_is_gone_ || sale_is_lost_))) throw;
      note_failure(failure, "orders wait, the worker tries again");
      group_is_lost_ |= sale::is_group_lost(failure);
      reread_from_ = "-";
    }
    if (!pause(stop)) return false;
  }
}

/// As far as the store says: an archive takes the stream away, which is no trouble.
bool OrderWorker::Impl::is_archived() const noexcept try {
  return store_.run({"HEXISTS", keys_.sale, "archived"}).get().as_integer() == 1;
} catch (const std::exception&) {
  return false;
}

void OrderWorker::Impl::make_group() {
  sale_is_gone_ = !queue_.make_group();
  if (sale_is_gone_ && !drains_ && is_archived()) throw IsArchived{};
  if (sale_is_gone_)
    throw Error{Errc::server,
                fmt::format("sale '{}' is not in the store any more, or archived; 'sluice sale "
                            "recover' makes one that is lost again from its database",
                            sale_.name)};
  group_is_lost_ = false;
  log(LogLevel::warning,
      fmt::format("sale '{}': its consumer group was lost and is made again", sale_.name));
}

/// False: `stop` came.
bool OrderWorker::Impl::pause(const std::stop_token& stop) { return rest(pauses_.next(), stop); }

bool OrderWorker::Impl::rest(std::chrono::nanoseconds time, const std::stop_token& stop) {
  Completion woken;
  const std::stop_callback wake{stop, [&] { woken.complete(); }};
  wait_until(woken, clock_, clock_.steady() + time).get();
  return !stop.stop_requested();
}

void OrderWorker::Impl::note_failure(const Error& failure, std::string_view what_follows) {
  say(LogLevel::warning,
      fmt::format("sale '{}': {}: {}", sale_.name, what_follows, failure.message()));
  count_failure(failure);
}

/// Once, and while it goes on once a minute.
void OrderWorker::Impl::say(LogLevel level, std::string line) {
  const auto now = clock_.steady();
  std::erase_if(said_, [&](const auto& said) { return said.second + pause_between_lines <= now; });
  const auto [said, is_new] = said_.emplace(std::move(line), now);
  if (is_new) log(level, said->first);
}

void OrderWorker::Impl::count_failure(const Error& failure) {
  record([&](WorkerProgress& progress) {
    ++progress.failures;
    progress.last_failure = failure.message();
  });
}

/// The next entries to bring in; acknowledges the last ones on the way.
OrderWorker::Impl::Entries OrderWorker::Impl::take(const std::stop_token& stop, bool may_wait) {
  if (ahead_)
    if (auto entries = await_read_ahead(); !entries.empty()) return entries;
  if (stop.stop_requested() && reread_from_.empty()) return {};

  queue_.acknowledge(committed_, orders_.mark(sale_.name));
  committed_.clear();
  if (auto entries = reread(); !entries.empty() || stop.stop_requested()) return entries;
  if (clock_.steady() >= next_look_at_deadlines_) look_at_deadlines();
  if (clock_.steady() >= next_settling_) settle_some();
  while (clock_.steady() >= next_claim_)
    if (auto entries = take_over(); !entries.empty()) return entries;
  try_suspects(stop);
  if (may_wait && !has_more() && options_.blocks)
    return queue_.read(options_.batch, options_.idle_wait);
  read_ahead();
  auto entries = await_read_ahead();
  if (entries.empty() && may_wait && !has_more()) rest(options_.idle_wait, stop);
  return entries;
}

/// Reads the next entries while these are brought into the database.
void OrderWorker::Impl::read_ahead() {
  ahead_ = std::make_unique<ReadAhead>(driver_);
  ahead_->committed = std::move(committed_);
  committed_.clear();
  spawn(carry_out(*ahead_, queue_, orders_.mark(sale_.name), options_.batch));
}

OrderWorker::Impl::Entries OrderWorker::Impl::await_read_ahead() {
  wait_for(*ahead_).get();
  const auto ahead = std::move(ahead_);
  if (ahead->failure) {
    committed_ = std::move(ahead->committed);  // once more, with the next read
    std::rethrow_exception(ahead->failure);
  }
  return sale::OrderQueue::entries_read(ahead->reply);
}

OrderWorker::Impl::Entries OrderWorker::Impl::reread() {
  while (!reread_from_.empty()) {
    auto page = queue_.reread(reread_from_, most_looked_at, options_.most_deliveries);
    reread_from_ = page.next;
    if (!page.entries.empty()) return std::move(page.entries);
  }
  return {};
}

/// Entries that no live worker has, a page at a time until all were looked at: those of dead
/// workers, then those that were handed to nobody.
OrderWorker::Impl::Entries OrderWorker::Impl::take_over() {
  if (adopt_from_.empty()) {
    auto entries = claim();
    if (claim_from_ == queue_start) adopt_from_ = "-";
    return entries;
  }
  auto adopted = queue_.adopt(adopt_from_, most_looked_at);
  adopt_from_ = adopted.next;
  record([&](WorkerProgress& progress) { progress.claimed += adopted.entries.size(); });
  if (adopt_from_.empty()) {
    queue_.tidy(options_.claim_after);
    next_claim_ = clock_.steady() + pause_between_looks();
  }
  return std::move(adopted.entries);
}

/// Does some of what processes that died left undone: ends of orders, a change of the stock.
void OrderWorker::Impl::settle_some() {
  if (!settlement_)
    settlement_.emplace(store_, sale_, orders_);
  else if (!settle_from_)  // somebody may have lost and made it again, or closed it
    enter_sale();
  const bool has_more = sale_.payment && bring_in_money().has_more;
  const auto some = settlement_->settle_some(settle_from_.value_or(-1), most_settled);
  settle_from_ = some.next;
  if (has_more && !settle_from_) settle_from_ = -1;
  if (!settle_from_) next_settling_ = clock_.steady() + pause_between_looks();
  if (sale_.payment) next_look_at_deadlines_ = clock_.steady() + pause_between_deadlines;
  if (!some.lost) return;
  try {
    std::rethrow_exception(some.lost);
  } catch (const Error& lost) {
    say(LogLevel::warning, lost.message());
    count_failure(lost);
  }
}

/// Buyers wait for the units of those who do not pay, so this is looked at oftener than what dead
/// processes may have left.
void OrderWorker::Impl::look_at_deadlines() {
  const auto money = bring_in_money();
  const auto now = clock_.steady();
  next_look_at_deadlines_ =
      now + (money.is_sound ? pause_between_deadlines : pause_between_looks());
  if (money.is_sound && money.has_some) next_settling_ = now;
}

/// Payments whose order came after them, and orders that were not paid in time; in the database
/// alone. The store follows where returns are settled: what it has lost holds up nothing there.
/// Nor does a row that somebody damaged hold up the others.
OrderWorker::Impl::Money OrderWorker::Impl::bring_in_money() {
  auto& money = orders_.payments();
  bool is_sound = true;
  const auto try_to = [&](auto&& do_it) {
    try {
      do_it();
    } catch (const Error& failure) {
      if (failure.errc() != Errc::corrupt) throw;
      is_sound = false;
      note_failure(failure, "a row is damaged, and left as it is");
    }
  };
  const auto ready = money.ready(sale_.name, most_settled);
  for (const auto& payment : ready) try_to([&] { money.apply(payment); });
  const auto due = money.due(sale_.name, most_settled);
  try {
    money.expire_all(sale_.name, due);
  } catch (const Error& failure) {
    if (failure.errc() != Errc::corrupt) throw;
    for (const auto id : due) try_to([&] { money.expire(sale_.name, id); });
  }
  return {.is_sound = is_sound,
          .has_some = !ready.empty() || !due.empty(),
          .has_more = is_sound && (ready.size() == most_settled || due.size() == most_settled)};
}

void OrderWorker::Impl::recover_if_needed() {
  if (clock_.steady() < next_look_at_gate_) return;
  next_look_at_gate_ = clock_.steady() + options_.idle_wait;
  const auto done = sale::recover_if_needed(store_, sale_.name, orders_);
  if (!done) return;
  log(LogLevel::warning,
      fmt::format("sale '{}' is recovered, since {}: {} orders restored, {} sent again, {} gaps",
                  sale_.name,
                  done->made_again       ? "its store had lost it"
                  : done->reason.empty() ? "its store was started again, or is another server"
                                         : done->reason,
                  done->restored, done->sent_again, done->gaps));
  record([](WorkerProgress& progress) { ++progress.recoveries; });
}

/// Entries of dead workers. Suspects that had no turn since the last round are claimed again.
OrderWorker::Impl::Entries OrderWorker::Impl::claim() {
  if (claim_from_ == queue_start) suspects_.clear();
  auto claimed =
      queue_.claim(options_.claim_after, claim_from_, options_.batch, options_.most_deliveries);
  claim_from_ = claimed.next;
  record([&](WorkerProgress& progress) {
    progress.claimed += claimed.entries.size() + claimed.suspects.size();
  });
  suspects_.merge(claimed.suspects);
  return std::move(claimed.entries);
}

/// Of a batch whose workers die one order may be the cause, and the others are not: so each is
/// tried alone, with nothing else in hand, those last that workers have died of alone.
void OrderWorker::Impl::try_suspects(const std::stop_token& stop) {
  const auto end = clock_.steady() + longest_tries_alone;
  bool goes_on = true;
  while (goes_on && !suspects_.empty() && clock_.steady() < end) {
    const auto suspect = suspects_.extract(suspects_.begin());
    goes_on = try_alone(suspect.mapped(), suspect.key(), stop);
  }
}

/// False: `stop` came.
bool OrderWorker::Impl::try_alone(const std::string& id, std::int64_t tries,
                                  const std::stop_token& stop) {
  // Workers may also have died of a database that was away. A write that succeeds now says that it
  // is not.
  if (!attempt(stop, [&] { orders_.add_sale(sale_.name, sale_.stock); })) return false;
  if (tries >= most_tries_alone) {
    bury(id, fmt::format("tried alone {} times and never finished", tries));
    return true;
  }
  auto entry = queue_.deliver_alone(id, tries);
  if (!entry) return true;
  Entries alone;
  alone.push_back(std::move(*entry));
  if (!bring_in(std::move(alone), stop, false)) return false;
  // At once: the next one may be the end of this worker.
  queue_.acknowledge(committed_, orders_.mark(sale_.name));
  committed_.clear();
  return true;
}

/// What the store itself says of these entries, and of the sale. A store that cannot be asked holds
/// up nothing: what it has given out gets in, whatever becomes of it.
OrderWorker::Impl::Known OrderWorker::Impl::ask_store(const Entries& entries) {
  std::vector<BuyerId> buyers;
  std::vector<sale::Wish> wishes;
  for (const auto& entry : entries) {
    if (!entry.order) continue;
    buyers.push_back(entry.order->buyer);
    wishes.push_back({entry.order->buyer, entry.order->request});
  }
  Known known;
  known.records.resize(wishes.size());
  try {
    const auto born = store_.run({"HGET", keys_.sale, "born"}).get();
    known.is_another = !born.is_null() && born.as_text() != born_;
    auto latest = records_.find(std::span<const BuyerId>{buyers}).get();
    std::vector<sale::Wish> earlier;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      if (latest[i] && latest[i]->latest.request == wishes[i].request) {
        known.records[i] = std::move(latest[i]->latest);
      } else {
        earlier.push_back(std::move(wishes[i]));
        places.push_back(i);
      }
    }
    auto found = records_.find(std::span<const sale::Wish>{earlier}).get();
    for (std::size_t i = 0; i < found.size(); ++i) known.records[places[i]] = std::move(found[i]);
  } catch (const Error& failure) {
    count_failure(failure);
  }
  return known;
}

/// Why an order is none that the sale has given; empty: it may be one.
std::string OrderWorker::Impl::refuse(const SaleOrder& order,
                                      const std::optional<SaleOrder>& record) const {
  auto why = records_.refuse_number(order);
  return why.empty() ? contradiction(order, record) : "it " + why;
}

/// False: it could not be finished before `stop`; what is left stays pending.
bool OrderWorker::Impl::bring_in(Entries entries, const std::stop_token& stop, bool reads_ahead) {
  std::vector<SaleOrder> orders;
  std::vector<std::string> ids;
  orders.reserve(entries.size());
  ids.reserve(entries.size());
  const auto known = ask_store(entries);
  if (known.is_another) {
    const auto before = epoch_;
    if (!attempt(stop, [&] { enter_sale(); })) return false;
    if (epoch_ != before) {  // it was recovered meanwhile
      drop_all();
      return true;
    }
  }
  auto found = known.records.begin();
  for (auto& entry : entries) {
    const auto why = entry.order ? refuse(*entry.order, *found++) : "its fields make no order";
    if (why.empty()) {
      orders.push_back(std::move(*entry.order));
      ids.push_back(std::move(entry.id));
    } else if (!attempt(stop, [&] { bury(entry.id, why); })) {
      return false;
    }
  }
  InsertResult result;
  kept_at_.reset();
  // Not when it is time to claim: under a backlog the dead workers' entries would never have their
  // turn.
  if (reads_ahead && suspects_.empty() && !stop.stop_requested() &&
      clock_.steady() < std::min({next_claim_, next_settling_, next_look_at_deadlines_}))
    read_ahead();
  if (!attempt(stop, [&] { result = insert(orders, ids); })) return false;
  if (result.stale) return begin_again(stop);

  const bool are_given_twice =
      std::ranges::any_of(result.rejected, &InsertResult::Rejected::is_taken);
  if (are_given_twice && !attempt(stop, [&] { sale::stop_giving_twice(store_, sale_, orders_); }))
    return false;
  for (const auto& rejected : result.rejected) {
    auto& id = ids.at(rejected.index);
    if (!attempt(stop, [&] { bury(id, rejected.reason); })) return false;
    id.clear();
  }
  std::erase(ids, std::string{});
  committed_.insert(committed_.end(), std::make_move_iterator(ids.begin()),
                    std::make_move_iterator(ids.end()));
  count(metrics().sale_persisted, result.inserted);
  record([&](WorkerProgress& progress) {
    progress.inserted += result.inserted;
    progress.repeated += result.repeated;
  });
  return true;
}

InsertResult OrderWorker::Impl::insert(const std::vector<SaleOrder>& orders,
                                       const std::vector<std::string>& ids) {
  InsertResult result;
  try {
    result = orders_.insert(sale_.name, orders, epoch_);
  } catch (const Error&) {
    keep(ids);
    throw;
  }
  if (result.stale) keep(ids);
  return result;
}

/// Entries that were read before the sale was recovered may be of a store that is gone. Those that
/// the store still has are pending there, and are read again.
void OrderWorker::Impl::drop_all() {
  committed_.clear();
  reread_from_ = "-";
}

/// The sale was recovered since these entries were read.
bool OrderWorker::Impl::begin_again(const std::stop_token& stop) {
  try {
    if (ahead_) await_read_ahead();
  } catch (const Error& failure) {
    note_failure(failure, "what was read is read again");
  }
  drop_all();
  const auto before = epoch_;
  return attempt(stop, [&] {
    enter_sale();
    if (epoch_ == before)
      throw Error{Errc::database,
                  fmt::format("sale '{}' is being recovered; orders go into {} again when that has "
                              "ended",
                              sale_.name, orders_.describe())};
  });
}

/// While the database is away, or the sale is being recovered, the entries stay ours, so that no
/// other worker takes them in vain; and restarts of this one do not make suspects of them.
void OrderWorker::Impl::keep(const std::vector<std::string>& ids) {
  if (ids.empty() || (kept_at_ && clock_.steady() < *kept_at_ + options_.claim_after / 3)) return;
  queue_.keep(ids);
  kept_at_ = clock_.steady();
}

void OrderWorker::Impl::bury(const std::string& id, const std::string& reason) {
  if (!queue_.bury(id, reason)) return;
  log(LogLevel::error,
      fmt::format("sale '{}': entry {} is a dead letter: {}", sale_.name, id, reason));
  count(metrics().sale_dead_letters);
  record([](WorkerProgress& progress) { ++progress.dead; });
}

WorkerProgress& WorkerProgress::operator+=(const WorkerProgress& more) {
  inserted += more.inserted;
  repeated += more.repeated;
  claimed += more.claimed;
  dead += more.dead;
  recoveries += more.recoveries;
  failures += more.failures;
  if (!more.last_failure.empty()) last_failure = more.last_failure;
  return *this;
}

OrderWorker::OrderWorker(Store& store, const Sale& sale, OrderStore& orders,
                         OrderWorkerOptions options) {
  check(options);
  impl_ = std::make_unique<Impl>(store, sale, orders, options);
}

OrderWorker::~OrderWorker() = default;
void OrderWorker::run(std::stop_token stop) { impl_->work(stop, false); }
void OrderWorker::drain(std::stop_token stop) { impl_->work(stop, true); }
WorkerProgress OrderWorker::progress() const { return impl_->progress(); }
const std::string& OrderWorker::consumer() const noexcept { return impl_->consumer(); }

}  // namespace sluice
