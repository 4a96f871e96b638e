#include "sale/streams.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "sale/order_queue.hpp"

namespace sluice::sale {
namespace {

/// Reads one stream behind `from` to its end. Returns where that was.
template <class Visit>
std::string read_on(Store& store, const std::string& stream, std::string from, Visit&& visit) {
  const auto count = fmt::to_string(page_size);
  for (;;) {
    const auto page = store.run({"XRANGE", stream, from, "+", "COUNT", count}).get();
    const auto& entries = page.as_items();
    if (entries.empty()) return from;
    visit(entries);
    from = "(" + entries.back().as_items().at(0).as_text();
    if (entries.size() < page_size) return from;
  }
}

/// The time in the id of an entry: "1795243971762-0".
std::int64_t ms_of(const std::string& entry) {
  return parse_integer<std::int64_t>(entry.substr(0, entry.find('-'))).value_or(0);
}

}  // namespace

/// An entry has the time of its admission, and stands behind those of the same millisecond; it is
/// elsewhere where the store's clock went back, or somebody sent it again.
bool is_where_it_was_put(Store& store, const SaleKeys& keys, const SaleOrder& order) {
  constexpr int most_pages = 25;
  constexpr auto count = "200";
  constexpr std::int64_t late_ms = 100;
  const auto issued_ms =
      std::chrono::floor<std::chrono::milliseconds>(order.issued_at).time_since_epoch().count();
  auto from = fmt::to_string(issued_ms);
  for (int i = 0; i < most_pages; ++i) {
    const auto page = store.run({"XRANGE", keys.orders, from, "+", "COUNT", count}).get();
    const auto& entries = page.as_items();
    if (entries.empty()) return false;
    for (const auto& entry : entries)
      if (const auto there = entry_of(entry).order; there && there->id >= order.id)
        return there->id == order.id;  // ids rise
    const auto& last = entries.back().as_items().at(0).as_text();
    if (ms_of(last) > issued_ms + late_ms) return false;
    from = "(" + last;
  }
  return false;
}

StreamsRead read_streams(Store& store, const SaleKeys& keys,
                         const std::function<void(const std::vector<StreamOrder>&)>& visit) {
  constexpr std::size_t most_places = 100;
  StreamsRead read;
  const auto take = [&](bool is_dead) {
    return [&, is_dead](const Value::Items& entries) {
      std::vector<StreamOrder> page;
      page.reserve(entries.size());
      for (const auto& entry : entries) {
        auto found = entry_of(entry);
        read.dead += is_dead;
        if (found.order) {
          page.push_back({std::move(found.id), std::move(*found.order), is_dead});
          continue;
        }
        ++read.poison;
        if (read.places.size() < most_places)
          read.places.push_back((is_dead ? "dead letter " : "entry ") + found.id);
      }
      visit(page);
    };
  };
  // A letter that is revived meanwhile was seen among the dead, an entry that is buried meanwhile
  // is seen there now.
  const auto dead_end = read_on(store, keys.dead, "-", take(true));
  read_on(store, keys.orders, "-", take(false));
  read_on(store, keys.dead, dead_end, take(true));
  return read;
}

}  // namespace sluice::sale
