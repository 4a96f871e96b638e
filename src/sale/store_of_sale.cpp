#include "sale/store_of_sale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/random.hpp"
#include "sale/definition.hpp"
#include "sale/differences.hpp"

namespace sluice::sale {
namespace {

std::string named(const StoreOfSale& store) {
  constexpr std::size_t shown_size = 8;
  if (store.id.empty()) return store.place.empty() ? "a store of before" : store.place;
  return fmt::format("{} (store {})", store.place, store.id.substr(0, shown_size));
}

std::string born_in(const OrderStore::Fields& fields) {
  const auto born =
      std::ranges::find(fields, "born", [](const auto& field) { return field.first; });
  return born == fields.end() ? std::string{} : born->second;
}

}  // namespace

Task<std::string> id_of_store(Store& store) {
  const auto word = random_hex_128();
  auto made = store.run({"SET", store_key, word, "NX"}, repeatable);
  co_await made;
  auto asked = store.run({"GET", store_key});
  const Value there = co_await asked;
  co_return there.is_null() ? word : there.as_text();
}

StoreOfSale store_of_sale(Store& store, const std::string& sale) {
  StoreOfSale here{.id = {}, .place = store.describe()};
  const auto in_hash = store.run({"HGET", SaleKeys{sale}.sale, "home"}).get();
  const auto known = in_hash.is_null() ? store.run({"GET", store_key}).get() : in_hash;
  if (!known.is_null()) here.id = known.as_text();
  return here;
}

bool is_sold_here(Store& store, const std::string& sale, OrderStore& orders,
                  const StoreOfSale& here) {
  const auto there = orders.store_of(sale);
  if (!there) return true;
  if (!there->id.empty()) return there->id == here.id;
  const auto born = born_in(orders.definition(sale));
  const auto in_hash = store.run({"HGET", SaleKeys{sale}.sale, "born"}).get();
  return born.empty() || (!in_hash.is_null() && in_hash.as_text() == born);
}

void need_sold_here(Store& store, const std::string& sale, OrderStore& orders) {
  const auto here = store_of_sale(store, sale);
  if (!is_sold_here(store, sale, orders, here))
    throw another_store(sale, orders.describe(), orders.store_of(sale).value_or(StoreOfSale{}),
                        here);
}

Error another_store(const std::string& sale, const std::string& database, const StoreOfSale& there,
                    const StoreOfSale& here) {
  const auto since = there.since == WallTime{} ? std::string{} : ", since " + to_text(there.since);
  return Error{
      Errc::config_mismatch,
      fmt::format("sale '{0}' of {1} is sold in {2}{3}, and this store is {4}: use that one "
                  "(--store). Where it has moved, give its new address, with its data. Where it is "
                  "lost, or came back empty, end all that uses it, and 'sluice sale recover {0} "
                  "--new-store' makes the sale again in {5} from the database",
                  shown(sale), database, named(there), since,
                  here.id.empty() ? here.place + ", which knows no sale" : named(here),
                  here.place)};
}

void refuse_copy(Store& store, const std::string& sale, OrderStore& orders) {
  const auto there = store.run({"HMGET", SaleKeys{sale}.sale, "epoch", "recovered"}).get();
  const auto& epoch = there.as_items().at(0);
  const auto& where = there.as_items().at(1);
  if (epoch.is_null() || where.is_null() ||
      parse_integer<std::int64_t>(epoch.as_text()).value_or(0) <= orders.epoch(sale))
    return;
  throw Error{
      Errc::config_mismatch,
      fmt::format("sale '{0}' in {1} was recovered with {2}, and {3} knows nothing of that: it is "
                  "a copy, or an older backup, of that database. End all that uses one of the two; "
                  "if {3} is to go on, 'sluice sale recover {0}' brings into it what the store "
                  "knows",
                  shown(sale), store.describe(), where.as_text(), orders.describe())};
}

std::string rolled_back(const std::string& sale, const std::string& database) {
  return fmt::format(
      "sale '{0}': {1} has lost what it had committed, as a backup was restored: "
      "buyers wait, and nothing of an archived sale is given back, until 'sluice sale recover {0}' "
      "has brought into it what the store knows",
      shown(sale), database);
}

}  // namespace sluice::sale

std::string sluice::database_of_sale(Store& store, const std::string& sale) {
  for (const auto& name : {sale, sale + ":0"}) {
    const auto word = store.run({"HGET", sale::SaleKeys{name}.sale, "database"}).get();
    if (word.is_null()) continue;
    const auto& text = word.as_text();
    return text.substr(text.find(' ') + 1);
  }
  return {};
}
