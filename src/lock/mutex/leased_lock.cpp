#include "lock/mutex/leased_lock.hpp"

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "lock/mutex/hash_hold.hpp"
#include "lock/mutex/leased_lock.lua.hpp"
#include "lock/mutex/mutex.lua.hpp"

namespace sluice::lock {
namespace {

constexpr std::string_view only_entry = ":1";
constexpr std::size_t uuid_length = 36;

/// What the scripts know the hold by. It follows from the owner: whoever renews knows no more.
std::string request_of(const OwnerId& owner) { return "leased:" + owner.text; }

/// Not sent again by the store: all holds of a wish have one name, and a late copy would end or
/// shorten a later one.
constexpr CallOptions once{};

/// As HandOff::across_processes has it.
constexpr std::string_view most_hand_overs = "16";

}  // namespace

OwnerId owner_of_wish(std::string_view wish) {
  auto digest = sha256(wish);
  digest[6] = static_cast<char>((digest[6] & 0x0F) | 0x80);  // RFC 9562: version 8, of one's own
  digest[8] = static_cast<char>((digest[8] & 0x3F) | 0x80);
  std::string text = hex_of(std::string_view{digest}.substr(0, 16));
  for (const std::size_t place : {20, 16, 12, 8}) text.insert(place, 1, '-');
  return OwnerId{text.append(only_entry)};
}

bool is_owner_of_wish(std::string_view text) {
  return text.size() == uuid_length + only_entry.size() && text.ends_with(only_entry) &&
         text.substr(0, uuid_length).find_first_not_of("0123456789abcdef-") == text.npos;
}

LeasedLock::LeasedLock(Store& store, std::string name) : store_(store), names_(std::move(name)) {
  check_one_slot(store, "a lock", names_.key, names_.channel);
}

Task<Expected<LeasedHold, HeldElsewhere>> LeasedLock::try_acquire(LeaseWish wish) {
  const auto lease = std::to_string(wish.lease.count());
  const auto request = request_of(wish.owner);
  const auto keys = this->keys();
  const std::vector<std::string_view> args{wish.owner.text, lease, request, wish.label};
  auto asked = store_.run(scripts::lock_mutex_lease, Words{keys}, Words{args}, once);
  const Value reply = co_await asked;
  const auto& parts = reply.as_items();
  const auto outcome = parts.at(0).as_integer();
  const auto figure = parts.at(1).as_integer();
  if (outcome != 0)
    co_return LeasedHold{FencingToken{static_cast<std::uint64_t>(figure)}, outcome == 1};
  HeldElsewhere held;
  if (figure >= 0) held.left = std::chrono::milliseconds{figure};
  co_return Unexpected{held};
}

Task<Expected<LeasedHold, HeldElsewhere>> LeasedLock::acquire(
    LeaseWish wish, std::shared_ptr<MessageSignal> released, SteadyTime until,
    std::stop_token stop) {
  auto& clock = store_.clock();
  auto listening = released->listen(names_.channel, until);  // before the look: none is missed
  co_await listening;
  for (;;) {
    auto asked = try_acquire(wish);
    auto held = co_await asked;
    if (held || clock.steady() >= until || stop.stop_requested()) co_return held;
    // The lease ends without a word, and a message may be lost.
    const auto rest = std::min(
        held.error().left.value_or(longest_rest) + std::chrono::milliseconds{1}, longest_rest);
    auto waiting = released->wait(std::min(until, Clock::add(clock.steady(), rest)), stop);
    co_await waiting;
  }
}

Task<std::optional<FencingToken>> LeasedLock::renew(OwnerId owner,
                                                    std::chrono::milliseconds lease) {
  const auto request = request_of(owner);
  const auto time = std::to_string(lease.count());
  const auto keys = this->keys();
  const std::vector<std::string_view> args{request, time};
  auto asked = store_.run(scripts::lock_mutex_prolong, Words{keys}, Words{args}, once);
  const Value reply = co_await asked;
  if (reply.is_null()) co_return std::nullopt;
  co_return FencingToken{static_cast<std::uint64_t>(reply.as_integer())};
}

Task<bool> LeasedLock::release(OwnerId owner) {
  const auto request = request_of(owner);
  const auto keys = this->keys();
  const std::vector<std::string_view> args{request, names_.channel, most_hand_overs, ""};
  auto asked = store_.run(scripts::lock_mutex_release, Words{keys}, Words{args}, once);
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

Task<bool> LeasedLock::withdraw(OwnerId owner, FencingToken token) {
  const auto request = request_of(owner);
  const auto its_token = std::to_string(token.value);
  const auto keys = this->keys();
  const std::vector<std::string_view> args{request, names_.channel, most_hand_overs, its_token};
  auto asked =
      store_.run(scripts::lock_mutex_withdraw, Words{keys}, Words{args}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

Task<LockInfo> LeasedLock::info() { return info_of(store_, names_); }

}  // namespace sluice::lock
