#include "server/shop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.hpp"
#include "base/thread.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/database_failure.hpp"
#include "sale/definition.hpp"
#include "sale/settlement.hpp"
#include "sale/store_of_sale.hpp"
#include "sale/streams.hpp"
#include "sluice/log.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::server {
namespace {

constexpr std::chrono::seconds shortest_call{1};

std::unique_ptr<OrderStore> open_orders_of_workers(const ShopOptions& options) {
  return open_order_store(options.orders, {.answer = options.longest_call, .makes_file = false});
}

constexpr std::string_view name_of(Needed needed) {
  return needed == Needed::store ? "store" : "database";
}

}  // namespace

Offer::Offer(Store& store, OfferedSale sale, OrderStore& orders, const ShopOptions& options,
             bool blocks)
    : store_(store), sale_(std::move(sale)), orders_(orders), options_(options), worker_([&] {
        auto worker = options.worker;
        worker.blocks = blocks;
        return worker;
      }()) {}

Offer::~Offer() = default;

/// One at a time: what a worker shows and tells is its own, and not that of one before it.
void Offer::begin_work() {
  std::jthread before;
  {
    const std::lock_guard lock{mutex_};
    before = std::exchange(thread_, {});
  }
  before = {};
  const std::lock_guard lock{mutex_};
  began_ = system_clock().steady();
  if (!is_stopped_)
    thread_ = start_stoppable_thread([this](const std::stop_token& stop) { work(stop); });
}

void Offer::stop() {
  std::stop_source worker;
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    worker = thread_.get_stop_source();
  }
  worker.request_stop();
}

/// An offer may be let go last by what its own worker completes, which cannot wait for itself.
void Offer::end_work() {
  stop();
  std::jthread worker;
  const std::lock_guard lock{mutex_};
  worker.swap(thread_);
}

std::string Offer::trouble() const {
  const std::lock_guard lock{mutex_};
  return trouble_;
}

std::optional<SaleOrder> Offer::find_on_its_way(std::string_view word) {
  const auto id = parse_integer<std::int64_t>(word);
  std::optional<SaleOrder> found;
  for (const auto* const part : sale_.parts())
    sale::read_streams(store_, sale::SaleKeys{part->definition().name}, [&](const auto& page) {
      for (const auto& [entry, order, is_dead] : page)
        if (order.number == word || (id && order.id == *id)) found = order;
    });
  return found;
}

void Offer::work_again() {
  {
    const std::lock_guard lock{mutex_};
    if (!has_ended_) return trouble_.clear();
    has_ended_ = false;
  }
  begin_work();
}

WorkerProgress Offer::progress() const {
  const std::lock_guard lock{mutex_};
  auto sum = ended_;
  if (progress_) sum += progress_();
  return sum;
}

/// A worker that meets the same again at once does not say so again.
void Offer::end(std::string trouble) {
  constexpr std::chrono::minutes long_enough{1};
  const std::lock_guard lock{mutex_};
  has_ended_ = !trouble.empty();
  if (has_ended_ && (trouble != said_ || system_clock().steady() - began_ > long_enough))
    log(LogLevel::error, fmt::format("sale '{}': its worker ended: {}", name(), trouble));
  if (has_ended_) said_ = trouble;
  trouble_ = std::move(trouble);
}

void Offer::work(const std::stop_token& stop) {
  std::string ended;
  try {
    if (auto* const bucketed = sale_.bucketed())
      run(BucketedWorker{store_, *bucketed, [this] { return open_orders_of_workers(options_); },
                         worker_},
          stop);
    else
      run(OrderWorker{store_, *sale_.parts().front(), orders_, worker_}, stop);
  } catch (const std::exception& failure) {
    ended = failure.what();
  }
  end(std::move(ended));
}

template <class Worker>
void Offer::run(Worker worker, const std::stop_token& stop) {
  show([&worker] { return worker.progress(); });
  try {
    worker.run(stop);
  } catch (...) {
    show({});
    throw;
  }
  show({});
}

void Offer::show(AskProgress progress) {
  const std::lock_guard lock{mutex_};
  if (progress_) ended_ += progress_();
  progress_ = std::move(progress);
}

Shop::Shop(Store& store, ShopOptions options, std::span<const SaleDefinition> sales)
    : store_(store),
      options_(std::move(options)),
      orders_(open_order_store(options_.orders, {.answer = std::max<std::chrono::milliseconds>(
                                                     options_.patience, shortest_call)})),
      orders_of_workers_(open_orders_of_workers(options_)) {
  for (const auto& sale : sales) defined_.insert(sale.name);
  for (const auto& name : names()) take_in(name, At::start);
  define(sales);
  for (const auto& name : options_.named.value_or(std::set<std::string, std::less<>>{}))
    if (!find(name))
      throw Error{Errc::bad_argument,
                  fmt::format("{} and {} know no sale '{}': 'NAME=UNITS' makes one{}",
                              store_.describe(), orders_->describe(), name,
                              trouble_of(name).empty() ? "" : "; " + trouble_of(name))};
}

/// Workers end here, and not where the last holder lets an offer go: that may be the worker itself.
/// Workers use what the shop has.
Shop::~Shop() {
  for (const auto& offer : all()) offer->stop();
  for (const auto& offer : all()) offer->end_work();
}

void Shop::need_store(OrderStore& orders, const std::string& sale, const std::string& place) {
  const auto there = orders.store_of(sale);
  if (there && (!there->id.empty() || !orders.definition(sale).empty()))
    throw sale::another_store(sale, orders.describe(), *there, {.id = {}, .place = place});
}

void Shop::stop() {
  for (const auto& offer : all()) offer->stop();
}

void Shop::define(std::span<const SaleDefinition> sales) {
  const std::lock_guard lock{looking_};
  for (const auto& sale : sales) check(sale);
  for (const auto& sale : sales) {
    try {
      create(sale);  // also where it is offered: in the same words
    } catch (const Error& failure) {
      // It has to be recovered, which its worker sees to: the others are sold.
      const bool is_offered = find(sale.name) != nullptr;
      if (failure.errc() != Errc::server && !(is_offered && failure.errc() == Errc::database))
        throw;
      if (!is_offered) note(sale.name, failure.what());
    }
    take_in(buckets_of(sale.name) > 0 ? sale::bucket_name(sale.name, 0) : sale.name, At::start);
  }
}

std::int64_t Shop::buckets_of(const std::string& sale) const {
  const auto found = options_.buckets.find(sale);
  return found == options_.buckets.end() ? 0 : found->second;
}

void Shop::check(const SaleDefinition& sale) {
  const auto other = find(sale.name);
  const auto buckets_there = std::max<std::int64_t>(buckets_of(sale.name), 1);
  for (std::int64_t i = 0; i < buckets_there; ++i)
    sale::need_sold_here(store_, buckets_there > 1 ? sale::bucket_name(sale.name, i) : sale.name,
                         *orders_);
  if (const auto buckets = buckets_of(sale.name)) {
    BucketedSale::check(store_, sale, {.buckets = buckets}).get();
  } else if (other && other->sale().bucketed()) {
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' is there, with {} buckets: say so, or use another name",
                            sale.name, other->sale().bucketed()->buckets())};
  } else {
    Sale::check(store_, sale).get();
  }
}

void Shop::create(const SaleDefinition& sale) {
  const auto buckets = buckets_of(sale.name);
  if (buckets > 0)
    BucketedSale::create(store_, sale, {.buckets = buckets}, *orders_);
  else if (find(sale.name))
    Sale::create(store_, sale).get();
  else
    Sale::create(store_, sale, *orders_);
}

std::shared_ptr<Offer> Shop::find(std::string_view name) const {
  const std::shared_lock lock{mutex_};
  const auto found = offers_.find(name);
  return found == offers_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Offer>> Shop::all() const {
  const std::shared_lock lock{mutex_};
  std::vector<std::shared_ptr<Offer>> all;
  all.reserve(offers_.size());
  for (const auto& [name, offer] : offers_) all.push_back(offer);
  return all;
}

std::string Shop::trouble_of(std::string_view name) const {
  const std::shared_lock lock{mutex_};
  const auto found = troubles_.find(name);
  return found == troubles_.end() ? std::string{} : found->second;
}

std::map<std::string, std::string, std::less<>> Shop::troubles() const {
  const std::shared_lock lock{mutex_};
  return troubles_;
}

std::string Shop::trouble(Needed with) const {
  const std::shared_lock lock{mutex_};
  const auto& found = trouble_with_[std::size_t(with)];
  if (!found.empty() || !waits_ || waits_->second != with) return found;
  const auto waits = system_clock().steady() - waits_->first;
  if (waits < options_.patience) return {};
  return fmt::format("the {} has not answered for {} s", name_of(with),
                     std::chrono::floor<std::chrono::seconds>(waits).count());
}

void Shop::note_step(Needed with) {
  const std::lock_guard lock{mutex_};
  waits_.emplace(system_clock().steady(), with);
}

/// A store that came back empty names no sales; the database still does.
std::vector<std::string> Shop::names() {
  auto names = Sale::names(store_).get();
  for (auto& name : orders_->sales()) names.push_back(std::move(name));
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  std::set<std::string, std::less<>> others;
  std::erase_if(names, [&](const std::string& name) {
    const bool is_served = !options_.named || is_named(name) || is_named(sale::whole_name(name));
    if (!is_served) others.insert(name);
    return !is_served;
  });
  const std::lock_guard lock{mutex_};
  others_ = std::move(others);
  return names;
}

bool Shop::is_named(std::string_view name) const {
  return defined_.contains(name) || (options_.named && options_.named->contains(name));
}

std::map<std::string, std::string, std::less<>> Shop::not_served() const {
  const std::shared_lock lock{mutex_};
  auto all = troubles_;
  for (const auto& name : others_) all.emplace(name, "it was not named when this process began");
  return all;
}

/// The lists of all sales lie in a cluster on servers of their own. Where one came back without
/// its list, a new sale would get the ids or the numbers of another. Where one is away, the next
/// look does it: nobody needs the lists to sell.
void Shop::list_again() try {
  const auto listed = [this] {
    return std::ssize(Sale::names(store_).get()) +
           store_.run({"HLEN", sale::types_key}).get().as_integer() +
           store_.run({"EXISTS", sale::lanes_key}).get().as_integer();
  };
  if (listed_ > 0 && listed() >= listed_) return;
  for (const auto& offer : all()) {
    for (const auto* const part : offer->sale().parts())
      sale::list_again(store_, part->definition().name);
    note_step(Needed::database);
  }
  listed_ = listed();
} catch (const Error& failure) {
  log(LogLevel::warning, fmt::format("the lists of sales: {}", failure.what()));
}

/// One sale that cannot be loaded does not hold up the others. A database that is the wrong one is
/// said at the start.
void Shop::take_in(const std::string& name, At when) {
  if (find(name) || buckets_.contains(name)) return;
  try {
    auto offer = load(name);
    if (options_.named && !is_named(offer->name())) return;  // its name looks like a bucket's
    const auto state = offer->sale().status().get().state;
    if (state != SaleState::archived) {
      // Tells whether these are the orders of this sale; one to be recovered is asked by its
      // worker.
      if (state != SaleState::recovering)
        offer->sale().settle(*orders_);
      else
        for (const auto* const part : offer->sale().parts())
          sale::need_sold_here(store_, part->definition().name, *orders_);
      offer->begin_work();
    }
    if (offer->sale().bucketed())
      for (const auto* const part : offer->sale().parts()) {
        buckets_.insert(part->definition().name);
        note(part->definition().name, {});
      }
    add(offer);
    note(name, {});
    if (state == SaleState::archived)
      for (const auto* const part : offer->sale().parts()) look_at_archived(part->definition());
  } catch (const Error& failure) {
    const bool is_asked_for = is_named(name) || is_named(sale::whole_name(name));
    if (when == At::start && is_asked_for && failure.errc() == Errc::config_mismatch) throw;
    note(name, failure.what());
  }
}

std::shared_ptr<Offer> Shop::load(const std::string& name) {
  auto sale = Sale::load(store_, name).get();
  if (!sale) {
    recover(store_, name, *orders_);
    sale = Sale::load(store_, name).get();
    if (!sale) throw Error{Errc::server, "it was made again, and is gone once more"};
  }
  auto whole = load_whole(std::move(*sale));
  const bool blocks = options_.worker.blocks && may_block(whole);
  return std::make_shared<Offer>(store_, std::move(whole), *orders_of_workers_, options_, blocks);
}

/// Beyond so many, workers would wait for their turns to wait for orders.
bool Shop::may_block(OfferedSale& next) const {
  constexpr std::size_t most = 48;  // of 64 that a Store lets wait
  auto workers = next.parts().size();
  for (const auto& offer : all()) workers += offer->sale().parts().size();
  return workers <= most;
}

/// The sale, or all buckets of the one that it is a bucket of.
OfferedSale Shop::load_whole(Sale part) {
  if (!part.definition().bucket) return OfferedSale{std::move(part)};
  auto whole = BucketedSale::load(store_, sale::whole_name(part.definition().name)).get();
  if (!whole) throw Error{Errc::server, "its buckets are gone again"};
  return OfferedSale{std::move(*whole)};
}

void Shop::add(std::shared_ptr<Offer> offer) {
  const std::lock_guard lock{mutex_};
  offers_.emplace(offer->name(), std::move(offer));
}

void Shop::note(std::string_view name, const std::string& trouble) {
  {
    const std::lock_guard lock{mutex_};
    const auto before = troubles_.find(name);
    if ((before == troubles_.end() ? std::string{} : before->second) == trouble) return;
    if (trouble.empty())
      troubles_.erase(before);
    else
      troubles_.insert_or_assign(std::string{name}, trouble);
  }
  if (trouble.empty())
    log(LogLevel::info, fmt::format("sale '{}' is loaded", name));
  else
    log(LogLevel::error, fmt::format("sale '{}' cannot be sold: {}", name, trouble));
}

/// Nobody named it, and neither store nor database knows it any more.
void Shop::forget_what_is_gone(const std::vector<std::string>& names) {
  if (options_.named) return;
  const std::lock_guard lock{mutex_};
  std::erase_if(troubles_, [&](const auto& trouble) {
    return !offers_.contains(trouble.first) && !std::ranges::binary_search(names, trouble.first);
  });
}

/// A worker that has nothing to bring would hear of that late.
void Shop::shut_what_is_sold_elsewhere() {
  for (auto* const orders : {orders_.get(), orders_of_workers_.get()})
    for (const auto& name : orders->sold_elsewhere()) try {
        auto sale = Sale::load(store_, name).get();
        if (!sale) continue;
        if (sale->status().get().state == SaleState::archived)
          rolled_back_.insert(name);
        else
          sale::attach(store_, sale->definition(), *orders);
      } catch (const Error& failure) {
        if (failure.errc() != Errc::config_mismatch) throw;
        note(name, failure.what());
      }
  const auto names = rolled_back_;
  for (const auto& name : names)
    if (const auto sale = Sale::load(store_, name).get()) look_at_archived(sale->definition());
}

/// No worker would see that its database was restored from before. One that has its orders in
/// another database is as it is.
void Shop::look_at_archived(const SaleDefinition& sale) try {
  const auto& name = sale.name;
  if (sale::attach(store_, sale, *orders_)) {
    rolled_back_.insert(name);
    note(name, fmt::format("it is archived, and its database was restored from before: nothing of "
                           "it is given back until 'sluice sale recover {}' accepts that",
                           name));
  } else if (rolled_back_.erase(name) > 0) {
    note(name, {});
  }
} catch (const Error& failure) {
  if (failure.errc() != Errc::config_mismatch) throw;
}

void Shop::look() {
  const std::lock_guard lock{looking_};
  // Whether it takes writes, too: a question alone does not show that a disk is full.
  look_at(Needed::store, [this] {
    store_.run({"SET", "sluice:service:alive", "1", "PX", "10000"}).get();
  });
  look_at(Needed::database, [this] {
    try_to_write();
    if (trouble(Needed::store).empty()) look_at_sales();
  });
  for (const auto& offer : all()) offer->work_again();
}

void Shop::try_to_write() {
  const auto now = system_clock().steady();
  const bool was_well = trouble(Needed::database).empty();
  if (was_well && now < writes_next_) return;
  orders_->check_writable();
  writes_next_ = now + options_.writes_every;
}

/// Throws what the database says. What the store says, which is asked too, the next look says
/// again.
void Shop::look_at_sales() try {
  const auto there = names();
  forget_what_is_gone(there);
  for (const auto& name : there) {
    take_in(name, At::later);
    note_step(Needed::database);
  }
  list_again();
  shut_what_is_sold_elsewhere();
} catch (const Error& failure) {
  if (sale::is_of_database(failure)) throw;
  log(LogLevel::warning, fmt::format("sales: {}", failure.what()));
}

void Shop::look_at(Needed with, const std::function<void()>& step) {
  note_step(with);
  std::string trouble;
  try {
    step();
  } catch (const std::exception& failure) {
    trouble = failure.what();
  }
  const std::lock_guard lock{mutex_};
  waits_.reset();
  auto& before = trouble_with_[std::size_t(with)];
  if (trouble != before)
    log(trouble.empty() ? LogLevel::info : LogLevel::error,
        fmt::format("the {} {}", name_of(with),
                    trouble.empty() ? "serves again" : "is in trouble: " + trouble));
  before = std::move(trouble);
}

}  // namespace sluice::server
