#include "sluice/bucketed_sale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "number/period.hpp"
#include "sale/buckets/any_bucket.hpp"
#include "sale/buckets/borrowing.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/definition.hpp"
#include "sale/settlement.hpp"
#include "sale/store_of_sale.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"

namespace sluice {

class BucketedSale::Impl {
 public:
  Impl(Store& store, SaleDefinition whole, std::vector<Sale> sales)
      : store_(store),
        whole_(std::move(whole)),
        sales_(std::move(sales)),
        shares_(store, whole_, std::ssize(sales_)) {
    for (std::int64_t i = 0; i < count(); ++i)
      borrowings_.push_back(std::make_unique<sale::Borrowing>(store, shares_, i));
  }

  const SaleDefinition& definition() const noexcept { return whole_; }
  std::int64_t count() const noexcept { return std::ssize(sales_); }
  std::vector<Sale>& sales() noexcept { return sales_; }
  Sale& bucket(std::int64_t index) { return sales_.at(static_cast<std::size_t>(index)); }
  Sale& bucket_of(const BuyerId& buyer) { return bucket(sale::bucket_of(buyer, count())); }

  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units);
  Task<BucketedStatus> status();
  Task<void> close();
  void close(OrderStore& orders);
  PaymentResult pay(OrderStore& orders, Payment payment);
  bool change_stock(OrderStore& orders, std::int64_t stock);
  void settle(OrderStore& orders);

 private:
  Task<sale::Borrowed> borrow(std::int64_t bucket, std::int64_t units) {
    return borrowings_.at(static_cast<std::size_t>(bucket))->borrow_for(units);
  }
  std::int64_t bucket_of_order(OrderStore& orders, const std::string& name);
  void look_for_units(OrderStore& orders, std::int64_t bucket, const std::string& name);
  void finish_transfers();
  bool has_room_for(std::int64_t stock);

  Store& store_;
  const SaleDefinition whole_;
  std::vector<Sale> sales_;
  sale::Shares shares_;
  std::vector<std::unique_ptr<sale::Borrowing>> borrowings_;
};

namespace {

/// How often units may come to a bucket and be gone again before a buyer is told to ask later.
constexpr int most_attempts = 30;

/// What a buyer is told who cannot have what he asked for.
SaleOutcome outcome_of(sale::Borrowed borrowed) {
  switch (borrowed) {
    case sale::Borrowed::sold_out: return SaleOutcome::sold_out;
    case sale::Borrowed::not_enough: return SaleOutcome::not_enough;
    case sale::Borrowed::recovering: return SaleOutcome::recovering;
    case sale::Borrowed::some: break;
  }
  return SaleOutcome::moving;
}

bool lacks_units(SaleOutcome outcome) {
  return outcome == SaleOutcome::sold_out || outcome == SaleOutcome::not_enough;
}

}  // namespace

Task<Admission> BucketedSale::Impl::buy(BuyerId buyer, RequestId request, std::int64_t units) {
  const auto index = sale::bucket_of(buyer, count());
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto asked = bucket(index).buy(buyer, request, units);
    Admission answer = co_await asked;
    if (!lacks_units(answer.outcome)) co_return answer;
    auto borrowing = borrow(index, units);
    const sale::Borrowed borrowed = co_await borrowing;
    if (borrowed == sale::Borrowed::some) continue;
    answer.outcome = outcome_of(borrowed);
    co_return answer;
  }
  co_return Admission{.outcome = SaleOutcome::moving, .order = {}};
}

namespace {

SaleState state_of(const BucketedStatus& status, const sale::Look& look) {
  const auto is = [](SaleState state) {
    return [state](const SaleStatus& bucket) { return bucket.state == state; };
  };
  const auto& all = status.buckets;
  if (std::ranges::all_of(all, is(SaleState::not_loaded))) return SaleState::not_loaded;
  if (std::ranges::all_of(all, is(SaleState::archived))) return SaleState::archived;
  for (const auto state : {SaleState::closed, SaleState::archived})
    if (std::ranges::any_of(all, is(state))) return SaleState::closed;
  if (!look.is_whole()) return SaleState::recovering;
  if (std::ranges::any_of(all, is(SaleState::not_started))) return SaleState::not_started;
  if (status.whole.left() <= 0) return SaleState::sold_out;
  const bool is_full = std::ranges::all_of(all, [](const SaleStatus& bucket) {
    return bucket.state == SaleState::full || bucket.state == SaleState::sold_out;
  });
  return is_full && std::ranges::any_of(all, is(SaleState::full)) ? SaleState::full
                                                                  : SaleState::open;
}

}  // namespace

Task<BucketedStatus> BucketedSale::Impl::status() {
  BucketedStatus status;
  for (auto& sale : sales_) {
    auto asked = sale.status();
    status.buckets.push_back(co_await asked);
  }
  auto looked = shares_.look();
  const sale::Look look = co_await looked;
  for (const auto& share : look.shares)
    if (share.failure) throw Error{*share.failure};
  for (const auto& bucket : status.buckets) {
    status.whole.sold += bucket.sold;
    status.whole.orders += bucket.orders;
    status.whole.waiting += bucket.waiting;
    status.whole.dead += bucket.dead;
  }
  status.whole.stock = look.stock();
  status.under_way = look.units_under_way();
  status.whole.state = state_of(status, look);
  co_return status;
}

Task<void> BucketedSale::Impl::close() {
  for (auto& sale : sales_) {
    auto closing = sale.close();
    co_await closing;
  }
}

void BucketedSale::Impl::close(OrderStore& orders) {
  for (auto& sale : sales_) sale.close(orders);
}

PaymentResult BucketedSale::Impl::pay(OrderStore& orders, Payment payment) {
  if (payment.sale != whole_.name)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': the payment is of sale '{}'", whole_.name, payment.sale)};
  const auto index = bucket_of_order(orders, payment.order);
  payment.sale = bucket(index).definition().name;
  orders.payments().keep(payment);  // first: a server of another bucket may be away
  look_for_units(orders, index, payment.order);
  return bucket(index).pay(orders, payment);
}

/// By its number, or its id: where it is recorded, else whose lane that is.
std::int64_t BucketedSale::Impl::bucket_of_order(OrderStore& orders, const std::string& name) {
  if (const auto index = sale::bucket_of_number(name, whole_, count())) return *index;
  const auto id = parse_integer<std::int64_t>(name);
  std::int64_t by_lane = 0;
  for (std::int64_t i = 0; id && i < count(); ++i) {
    const auto& part = bucket(i).definition().name;
    if (!orders.find(part, std::span{&*id, 1}).empty()) return i;
    constexpr int bits_of_count = 20;
    const auto lane = fmt::to_string(IdWorker::parts(*id).sequence >> bits_of_count);
    if (std::ranges::count(orders.definition(part), std::pair{std::string{"lane"}, lane}) > 0)
      by_lane = i;
  }
  return by_lane;
}

/// For an order that had expired: the store takes its units again where its bucket has them.
void BucketedSale::Impl::look_for_units(OrderStore& orders, std::int64_t index,
                                        const std::string& name) {
  const auto& part = bucket(index).definition().name;
  auto order = orders.find_number(part, name);
  if (const auto id = parse_integer<std::int64_t>(name); id && !order)
    if (auto found = orders.find(part, std::span{&*id, 1}); !found.empty()) order = found.front();
  if (!order || order->state != OrderState::expired) return;
  if (bucket(index).status().get().left() < order->units) borrow(index, order->units).get();
}

/// Whether what is sold leaves room for a smaller stock; then bucket 0 has what is to go.
bool BucketedSale::Impl::has_room_for(std::int64_t stock) {
  const auto look = shares_.look().get();
  for (const auto& share : look.shares)
    if (share.failure) throw *share.failure;
  const auto fewer = look.stock() - stock;
  if (fewer <= look.at(0).left()) return true;
  switch (borrow(0, fewer).get()) {
    case sale::Borrowed::some: return true;
    case sale::Borrowed::sold_out:
    case sale::Borrowed::not_enough: return false;
    case sale::Borrowed::recovering: break;
  }
  throw Error{Errc::server,
              fmt::format("sale '{}' has to be recovered before its stock is changed: see 'sluice "
                          "sale recover'",
                          whole_.name)};
}

/// The stock of bucket 0 is changed, whatever its share is: below zero where others have more than
/// the whole sale is to sell.
bool BucketedSale::Impl::change_stock(OrderStore& orders, std::int64_t stock) {
  auto changed = whole_;
  changed.stock = stock;
  sale::check(changed);
  auto& first = bucket(0);
  if (first.status().get().state == SaleState::archived)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' is archived: its stock changes no more", whole_.name)};
  sale::enter(store_, first.definition(), orders);  // with the rows that may have to give units
  const auto of_others = whole_.stock - first.definition().stock;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    if (!has_room_for(stock)) return false;
    if (sale::Settlement{store_, first.definition(), orders}.change_stock(stock - of_others))
      return true;
  }
  throw Error{Errc::server,
              fmt::format("sale '{}': buyers were quicker each time; change its stock once more",
                          whole_.name)};
}

/// What died on its way between two buckets.
void BucketedSale::Impl::finish_transfers() {
  const auto look = shares_.look().get();
  for (std::int64_t donor = 0; donor < count(); ++donor)
    for (std::int64_t receiver = 0; receiver < count(); ++receiver)
      if (const auto transfer = look.under_way(donor, receiver))
        shares_.take(donor, receiver, *transfer, look).get();
}

void BucketedSale::Impl::settle(OrderStore& orders) {
  for (auto& sale : sales_) sale.settle(orders);
  finish_transfers();
}

namespace {

void check_buckets(const SaleDefinition& whole, BucketOptions options) {
  if (options.buckets < 2 || options.buckets > sale::most_buckets)
    throw Error{Errc::bad_argument, fmt::format("sale '{}': {} buckets, it must be 2 to {}",
                                                whole.name, options.buckets, sale::most_buckets)};
  sale::check(whole);
}

[[noreturn]] void refuse_beside_whole(const SaleDefinition& whole) {
  throw Error{
      Errc::bad_argument,
      fmt::format("sale '{}' is there, without buckets: use that, or another name", whole.name)};
}

/// The store may have lost what the database knows, or may be another one.
void check_database(Store& store, const SaleDefinition& whole, BucketOptions options,
                    OrderStore& orders) {
  for (std::int64_t i = 0; i < options.buckets; ++i)
    sale::need_sold_here(store, sale::bucket_name(whole.name, i), orders);
  if (!orders.definition(whole.name).empty()) refuse_beside_whole(whole);
  const auto known = sale::any_bucket(orders, whole.name);
  if (known && known->bucket->count != options.buckets)
    throw Error{Errc::config_mismatch,
                fmt::format("sale '{}' has {} buckets in {}, and {} here: their number never "
                            "changes; say the same, or use another name",
                            whole.name, known->bucket->count, orders.describe(), options.buckets)};
}

/// Of a new sale no bucket has sold or moved a unit, and the first one is made last: so one that is
/// missing beside others was lost.
bool has_begun(const sale::Look& look) {
  if (look.at(0).is_there) return true;
  return std::ranges::any_of(look.shares, [](const sale::Share& share) {
    return share.is_there && (share.sold > 0 || share.moves != sale::first_moves ||
                              !share.in.empty() || !share.out.empty());
  });
}

/// As what is not to be beside buckets looks for them: before, after, and whenever it is loaded.
Task<void> need_no_whole(Store& store, const SaleDefinition& whole) {
  auto asked = sale::read_definition(store, whole.name);
  const std::optional<SaleDefinition> other = co_await asked;
  if (other) refuse_beside_whole(whole);
}

}  // namespace

Task<void> BucketedSale::check(Store& store, SaleDefinition definition, BucketOptions options) {
  check_buckets(definition, options);
  auto alone = need_no_whole(store, definition);
  co_await alone;
  for (std::int64_t i = 0; i < options.buckets; ++i) {
    auto checked = Sale::check(store, sale::bucket_definition(definition, i, options.buckets));
    co_await checked;
  }
}

Task<BucketedSale> BucketedSale::create(Store& store, SaleDefinition definition,
                                        BucketOptions options) {
  return make(store, std::move(definition), options, nullptr);
}

BucketedSale BucketedSale::create(Store& store, SaleDefinition definition, BucketOptions options,
                                  OrderStore& orders) {
  check_database(store, definition, options, orders);
  auto sale = make(store, std::move(definition), options, &orders).get();
  for (std::int64_t i = 0; i < options.buckets; ++i)
    sale::enter(store, sale.bucket(i).definition(), orders);
  check_database(store, sale.definition(), options, orders);
  return sale;
}

Task<BucketedSale> BucketedSale::make(Store& store, SaleDefinition definition,
                                      BucketOptions options, OrderStore* orders) {
  auto checked = check(store, definition, options);
  co_await checked;
  sale::Shares shares{store, definition, options.buckets};
  auto looked = shares.look();
  const sale::Look look = co_await looked;
  for (const auto& share : look.shares)
    if (share.failure) throw Error{*share.failure};
  std::vector<Sale> sales;
  for (auto i = options.buckets - 1; i >= 0; --i) {
    const auto bucket = sale::bucket_definition(definition, i, options.buckets);
    const bool was_lost = has_begun(look) || (orders && !orders->definition(bucket.name).empty());
    auto making = Sale::make(store, bucket, was_lost);
    sales.push_back(co_await making);
  }
  std::ranges::reverse(sales);
  auto alone = need_no_whole(store, definition);
  co_await alone;
  co_return BucketedSale{std::make_unique<Impl>(store, std::move(definition), std::move(sales))};
}

Task<std::optional<BucketedSale>> BucketedSale::load(Store& store, std::string name) {
  sale::check_name(name);
  auto asked = sale::any_bucket(store, std::move(name));
  const std::optional<SaleDefinition> found = co_await asked;
  if (!found) co_return std::nullopt;
  auto whole = sale::whole_definition(*found);
  auto alone = need_no_whole(store, whole);
  co_await alone;
  std::vector<Sale> sales;
  for (std::int64_t i = 0; i < found->bucket->count; ++i)
    sales.push_back(Sale{store, sale::bucket_definition(whole, i, found->bucket->count)});
  co_return BucketedSale{std::make_unique<Impl>(store, std::move(whole), std::move(sales))};
}

BucketedSale::BucketedSale(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
BucketedSale::~BucketedSale() = default;
BucketedSale::BucketedSale(BucketedSale&&) noexcept = default;
BucketedSale& BucketedSale::operator=(BucketedSale&&) noexcept = default;

const SaleDefinition& BucketedSale::definition() const noexcept { return impl_->definition(); }
std::int64_t BucketedSale::buckets() const noexcept { return impl_->count(); }
Sale& BucketedSale::bucket(std::int64_t index) { return impl_->bucket(index); }
const Sale& BucketedSale::bucket(std::int64_t index) const { return impl_->bucket(index); }
Sale& BucketedSale::bucket_of(const BuyerId& buyer) { return impl_->bucket_of(buyer); }
Sale* BucketedSale::bucket_of_number(std::string_view number) {
  const auto index = sale::bucket_of_number(number, definition(), buckets());
  return index ? &bucket(*index) : nullptr;
}

Task<Admission> BucketedSale::buy(BuyerId buyer, RequestId request, std::int64_t units) {
  return impl_->buy(std::move(buyer), std::move(request), units);
}
Task<std::optional<SaleOrder>> BucketedSale::find(BuyerId buyer, RequestId request) {
  auto& his = impl_->bucket_of(buyer);
  return his.find(std::move(buyer), std::move(request));
}
Task<std::optional<SaleOrder>> BucketedSale::latest(BuyerId buyer) {
  auto& his = impl_->bucket_of(buyer);
  return his.latest(std::move(buyer));
}
Task<BucketedStatus> BucketedSale::status() { return impl_->status(); }
Task<void> BucketedSale::close() { return impl_->close(); }
void BucketedSale::close(OrderStore& orders) { impl_->close(orders); }
EndedOrder BucketedSale::cancel(OrderStore& orders, BuyerId buyer, RequestId request,
                                std::string reason) {
  auto& his = impl_->bucket_of(buyer);
  return his.cancel(orders, std::move(buyer), std::move(request), std::move(reason));
}
UnitsResult BucketedSale::cancel_units(OrderStore& orders, BuyerId buyer, RequestId request,
                                       std::int64_t units, std::string key, std::string reason) {
  auto& his = impl_->bucket_of(buyer);
  return his.cancel_units(orders, std::move(buyer), std::move(request), units, std::move(key),
                          std::move(reason));
}
PaymentResult BucketedSale::pay(OrderStore& orders, const Payment& payment) {
  return impl_->pay(orders, payment);
}
std::size_t BucketedSale::expire(OrderStore& orders, std::size_t most) {
  std::size_t expired = 0;
  for (auto& sale : impl_->sales()) expired += sale.expire(orders, most);
  return expired;
}
bool BucketedSale::change_stock(OrderStore& orders, std::int64_t stock) {
  return impl_->change_stock(orders, stock);
}
void BucketedSale::settle(OrderStore& orders) { impl_->settle(orders); }

SaleRecovery recover_buckets(Store& store, const std::string& name, OrderStore& orders,
                             RecoveryOptions options) {
  sale::check_name(name);
  auto found = sale::any_bucket(store, name).get();
  if (!found) found = sale::any_bucket(orders, name);
  if (!found)
    throw Error{Errc::bad_argument, fmt::format("neither {} nor {} knows a sale '{}' with buckets",
                                                store.describe(), orders.describe(), name)};
  SaleRecovery sum;
  for (std::int64_t i = 0; i < found->bucket->count; ++i) {
    const auto done = recover(store, sale::bucket_name(name, i), orders, options);
    sum.made_again |= done.made_again;
    if (sum.reason.empty()) sum.reason = done.reason;
    sum.in_database += done.in_database;
    sum.restored += done.restored;
    sum.given_back += done.given_back;
    sum.on_the_way += done.on_the_way;
    sum.sent_again += done.sent_again;
    sum.ended_again += done.ended_again;
    sum.gaps += done.gaps;
    sum.removed += done.removed;
  }
  return sum;
}

}  // namespace sluice
