#include "proxy/flow/rate_limit.hpp"

#include <random>
#include <span>

namespace sluice::proxy::flow {
namespace {

using std::chrono::nanoseconds;

/// How long the bucket takes to get so many tokens; rounded down to the nanosecond, so that a full
/// one has all of its burst.
std::int64_t time_of(const Rate& rate, std::uint64_t tokens) noexcept {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;  // 146 years
  const auto period = static_cast<std::uint64_t>(nanoseconds{rate.period}.count());
  if (tokens > most / period) return static_cast<std::int64_t>(most / rate.amount);
  return static_cast<std::int64_t>(tokens * period / rate.amount);
}

/// What is charged.
std::int64_t price_of(const Rate& rate, std::uint64_t tokens) noexcept {
  constexpr auto beyond = nanoseconds{TokenBucket::longest_wait}.count();
  return std::min(time_of(rate, tokens), time_of(rate, rate.burst) + beyond);
}

Rate rate_of(const std::optional<Rate>& own, const std::optional<Rate>& of_all) noexcept {
  return own ? *own : of_all.value_or(Rate{});
}

}  // namespace

std::optional<nanoseconds> TokenBucket::take(const Rate& rate, std::uint64_t cost, SteadyTime now,
                                             nanoseconds patience) noexcept {
  const auto present = nanoseconds{now.time_since_epoch()}.count();
  const auto whole = time_of(rate, rate.burst);
  const auto deepest = present + whole + 2 * nanoseconds{longest_wait}.count();
  const auto price = price_of(rate, cost);
  auto full_at = full_at_.load(std::memory_order_relaxed);
  for (;;) {
    const auto before = std::clamp(full_at, present, deepest);
    const auto wait = before + std::min(price, whole) - present - whole;
    if (wait > patience.count()) return std::nullopt;
    if (full_at_.compare_exchange_weak(full_at, before + price, std::memory_order_relaxed))
      return nanoseconds{std::max<std::int64_t>(wait, 0)};
  }
}

void TokenBucket::give_back(const Rate& rate, std::uint64_t cost) noexcept {
  full_at_.fetch_sub(price_of(rate, cost), std::memory_order_relaxed);
}

std::uint64_t RatePair::mark() const noexcept {
  std::uint64_t mark = 1;
  for (const auto& rate : {requests, bytes})
    for (const auto part :
         {rate.amount, rate.burst, static_cast<std::uint64_t>(rate.period.count())})
      mark = (mark ^ part) * 0x9e3779b97f4a7c15;
  return mark;
}

std::optional<nanoseconds> RateAccount::take(const RatePair& rates, RequestCost cost,
                                             SteadyTime now, nanoseconds patience) noexcept {
  if (const auto mark = rates.mark(); mark_.load(std::memory_order_relaxed) != mark &&
                                      mark_.exchange(mark, std::memory_order_relaxed) != mark) {
    requests_.fill();
    bytes_.fill();
  }
  auto wait = std::optional{nanoseconds{0}};
  if (rates.requests.holds()) wait = requests_.take(rates.requests, cost.requests, now, patience);
  if (!wait || !rates.bytes.holds()) return wait;
  const auto more = bytes_.take(rates.bytes, cost.bytes, now, patience);
  if (more) return std::max(*wait, *more);
  if (rates.requests.holds()) requests_.give_back(rates.requests, cost.requests);
  return std::nullopt;
}

void RateAccount::give_back(const RatePair& rates, RequestCost cost) noexcept {
  if (rates.requests.holds()) requests_.give_back(rates.requests, cost.requests);
  if (rates.bytes.holds()) bytes_.give_back(rates.bytes, cost.bytes);
}

AddressAccounts::AddressAccounts()
    : seed_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      entries_(most_addresses) {}

std::uint64_t AddressAccounts::name_of(std::string_view network) const noexcept {
  // Of splitmix64 (Steele and others, 2014): each bit of the address changes half of the name.
  auto name = seed_;
  for (const char byte : network) {
    name = (name ^ static_cast<unsigned char>(byte)) * 0xbf58476d1ce4e5b9;
    name ^= name >> 29;
  }
  name *= 0x94d049bb133111eb;
  return name ^ (name >> 31);
}

RateAccount& AddressAccounts::find(std::uint64_t name) noexcept {
  const auto set = std::span{entries_}.subspan(name % sets * ways, ways);
  const auto known = std::ranges::find(set, name, &Entry::name);
  if (known != set.end()) return known->account;
  auto& fullest = *std::ranges::min_element(
      set, {}, [](const Entry& entry) { return entry.account.full_at(); });
  fullest.name = name;
  return fullest.account;
}

std::shared_ptr<RateAccount> RateAccounts::user(std::string_view name) {
  const std::lock_guard lock{mutex_};
  const auto found = users_.find(name);
  if (found != users_.end()) return found->second;
  return users_.emplace(name, std::make_shared<RateAccount>()).first->second;
}

AddressAccounts& RateAccounts::addresses() {
  const std::lock_guard lock{mutex_};
  if (!addresses_) addresses_ = std::make_unique<AddressAccounts>();
  return *addresses_;
}

ClientLimits::ClientLimits(RateAccounts& accounts, std::string_view network)
    : accounts_(accounts), network_(network) {}

bool ClientLimits::are_needed(const PoolSettings& settings) noexcept {
  return settings.rate_limit != LimitSettings{} ||
         std::ranges::any_of(settings.users, [](const UserSettings& user) {
           return user.rate.has_value() || user.byte_rate.has_value();
         });
}

void ClientLimits::apply(const PoolSettings& settings, std::string_view user) {
  const auto& limits = settings.rate_limit;
  of_address_ = {rate_of({}, limits.per_address), rate_of({}, limits.bytes_per_address)};
  addresses_ = of_address_.hold() && !network_.empty() ? &accounts_.addresses() : nullptr;
  if (addresses_) address_ = addresses_->name_of(network_);
  const auto known = user.empty() ? std::nullopt : settings.find_user(user);
  of_user_ = known ? RatePair{rate_of(known->rate, limits.per_user),
                              rate_of(known->byte_rate, limits.bytes_per_user)}
                   : RatePair{};
  user_ = of_user_.hold() ? accounts_.user(user) : nullptr;
}

std::optional<nanoseconds> ClientLimits::take(RequestCost cost, SteadyTime now,
                                              nanoseconds patience) {
  auto wait = std::optional{nanoseconds{0}};
  if (user_) wait = user_->take(of_user_, cost, now, patience);
  if (!wait || !addresses_) return wait;
  const auto more = addresses_->with(address_, [&](RateAccount& account) {
    return account.take(of_address_, cost, now, patience);
  });
  if (more) return std::max(*wait, *more);
  if (user_) user_->give_back(of_user_, cost);
  return std::nullopt;
}

}  // namespace sluice::proxy::flow
