#include "lock/mutex/waiters.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "lock/hold/owner.hpp"
#include "lock/text.hpp"

namespace sluice::lock {
namespace {

using std::chrono::milliseconds;

/// What was told longer ago than that is the word of a dead process.
constexpr milliseconds counts_for = std::chrono::seconds{60};

struct Known {
  milliseconds since{};
  std::string_view inbox;
  std::string_view owner;
  std::string_view holder;
  bool shown = false;
};

milliseconds take_time(std::string_view& text) {
  const auto word = take_word(text);
  std::int64_t time = 0;
  std::from_chars(word.data(), word.data() + word.size(), time);
  return milliseconds{time};
}

/// "request lease claim inbox owner holder"
Known known_by_ticket(std::string_view ticket) {
  for (int word = 0; word < 3; ++word) take_word(ticket);
  Known waiter{.inbox = take_word(ticket), .owner = take_word(ticket), .holder = {}};
  waiter.holder = ticket;
  return waiter;
}

/// Of "seen since inbox owner holder", by how long they have waited.
std::vector<Known> known_by_word(const Value::Items& fields, milliseconds now) {
  std::vector<Known> known;
  for (std::size_t i = 1; i < fields.size(); i += 2) {
    std::string_view text = fields[i].as_text();
    if (take_time(text) + counts_for < now) continue;
    Known waiter{
        .since = take_time(text), .inbox = take_word(text), .owner = take_word(text), .holder = {}};
    waiter.holder = text;
    known.push_back(waiter);
  }
  std::ranges::stable_sort(known, {}, &Known::since);
  return known;
}

LockInfo::Waiter shown(const Known& waiter) {
  return {.owner = {std::string{waiter.owner}}, .data = holder_data(waiter.holder)};
}

}  // namespace

std::vector<LockInfo::Waiter> waiters_of(const Value& tickets, const Value& told,
                                         milliseconds now) {
  std::vector<Known> known = known_by_word(told.as_items(), now);
  std::vector<LockInfo::Waiter> waiters;
  for (const Value& text : tickets.as_items()) {
    const Known ticket = known_by_ticket(text.as_text());
    bool tells = false;
    for (const bool first : {true, false}) {
      for (Known& waiter : known) {
        if (waiter.inbox != ticket.inbox || (waiter.owner == ticket.owner) != first) continue;
        tells = true;
        if (!std::exchange(waiter.shown, true)) waiters.push_back(shown(waiter));
      }
    }
    if (!tells) waiters.push_back(shown(ticket));
  }
  for (const Known& waiter : known)
    if (!waiter.shown) waiters.push_back(shown(waiter));
  return waiters;
}

}  // namespace sluice::lock
