// What stands in the streams: orders on their way, and dead letters.
#include <fmt/format.h>

#include "sale/differences.hpp"
#include "sale/order_queue.hpp"
#include "sale/orders.lua.hpp"
#include "sale/recovery/recovery.hpp"

namespace sluice::sale {

/// Orders of the streams that the records have lost are entered there; entries of orders in whose
/// place the database has another are removed.
void Recovery::reconcile_streams() {
  read_streams(store_, keys_, [&](const std::vector<StreamOrder>& entries) {
    std::vector<Wish> wishes;
    std::vector<SaleOrder> all;
    for (const auto& entry : entries) wishes.push_back({entry.order.buyer, entry.order.request});
    const auto records = records_.find(std::span<const Wish>{wishes}).get();
    for (const auto& record : records)
      if (record) all.push_back(*record);
    for (const auto& entry : entries) all.push_back(entry.order);
    const auto rows = rows_of(all);
    std::vector<SaleOrder> lost;
    std::vector<StreamOrder> void_entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& order = entries[i].order;
      if (!records_.refuse_number(order).empty()) continue;  // forged: a dead letter
      if (!records[i]) lost.push_back(order);
      const bool is_other = records[i] && fingerprint_of(*records[i]) != fingerprint_of(order);
      if (is_other && rows.contains(records[i]->id)) {
        void_entries.push_back(entries[i]);
      } else {
        on_the_way_.add(order);
        done_.on_the_way += !rows.contains(order.id);
      }
    }
    if (!lost.empty()) {  // one that ended before it came into a database that is lost
      std::vector<std::string> names;
      for (const auto& order : lost) names.push_back(fmt::format("{}:1", order.id));
      std::vector<std::string_view> words{"HMGET", keys_.returned};
      words.insert(words.end(), names.begin(), names.end());
      const auto returned = store_.run(Words{words}).get();
      for (std::size_t i = 0; i < lost.size(); ++i)
        if (!returned.as_items().at(i).is_null()) lost[i].state = OrderState::cancelled;
    }
    put(lost);
    remove_entries(void_entries);
    stay_known();
  });
  on_the_way_.sort();
}

void Recovery::remove_entries(const std::vector<StreamOrder>& entries) {
  for (const auto& entry : entries) {
    if (entry.is_dead)
      store_.run({"XDEL", keys_.dead, entry.entry}, repeatable).get();
    else
      store_
          .run(scripts::sale_acknowledge, {keys_.orders, keys_.sale}, {group, "", entry.entry},
               repeatable)
          .get();
    ++done_.removed;
  }
}

}  // namespace sluice::sale
