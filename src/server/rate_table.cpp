#include "server/rate_table.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace sluice::server {

using std::chrono::nanoseconds;

RateTable::RateTable(Clock& clock, Rate rate, std::size_t places)
    : clock_(clock),
      rate_(rate),
      window_(nanoseconds{rate.window}.count()),
      interval_(std::max<std::int64_t>(1, window_ / rate.quota)),
      key_(random_128()),
      sets_(std::max<std::size_t>(1, places / ways)) {}

std::optional<nanoseconds> RateTable::take(std::string_view name) { return ask(name, true); }
std::optional<nanoseconds> RateTable::look(std::string_view name) { return ask(name, false); }

/// Virtual scheduling (ITU-T I.371): each request pays for an interval, and a name may have paid a
/// whole window ahead. So one number says all that is to be known of a name, and one whose number
/// is past needs no place.
std::optional<nanoseconds> RateTable::ask(std::string_view name, bool takes) {
  const auto hash = SipHash::of(key_, name);
  const auto number = hash % sets_.size();
  const std::lock_guard lock{locks_[number % locks_.size()].mutex};
  const auto now = nanoseconds{clock_.steady().time_since_epoch()}.count();
  auto& place = place_of(sets_[number], hash);
  const auto paid_until =
      place.name == hash ? std::clamp(place.paid_until, now, now + window_) : now;
  const auto would_pay = paid_until + interval_;
  if (would_pay > now + window_) return nanoseconds{would_pay - now - window_};
  if (takes) place = {.name = hash, .paid_until = would_pay};
  return std::nullopt;
}

/// Its own, or else the one that is missed least.
RateTable::Place& RateTable::place_of(Set& set, std::uint64_t name) noexcept {
  const auto own = std::ranges::find(set, name, &Place::name);
  return own != set.end() ? *own : *std::ranges::min_element(set, {}, &Place::paid_until);
}

}  // namespace sluice::server
