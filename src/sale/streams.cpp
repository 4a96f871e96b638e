#include "sale/streams.hpp"

#include <fmt/format.h>

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

}  // namespace

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
