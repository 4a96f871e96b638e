#include "sale/store_of_sale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

// The id of a folder that was opened N times: ROOT.N.WORD, and before that a random word, of which
// ROOT is the beginning. Databases keep 32 characters of it.
constexpr std::size_t root_size = 14;
constexpr std::size_t word_at = root_size + 10;

bool is_counted(std::string_view id) { return id.size() > word_at && id[root_size] == '.'; }
std::int64_t openings(std::string_view id) {
  if (!is_counted(id)) return 0;
  return parse_integer<std::int64_t>(id.substr(root_size + 1, word_at - root_size - 2)).value_or(0);
}
bool is_copy(std::string_view id, std::string_view other) {
  return (is_counted(id) || is_counted(other)) &&
         id.substr(0, root_size) == other.substr(0, root_size);
}

/// Of an embedded engine; empty: it is none, or in memory.
std::filesystem::path folder_of(std::string_view place) {
  constexpr std::string_view scheme = "embedded:/";
  return place.starts_with(scheme) ? place.substr(scheme.size() - 1) : std::string_view{};
}

/// What this opening of the folder is known by.
std::string word_of_opening(Store& store) {
  constexpr std::string_view name = "run_id:";
  constexpr std::size_t size = 8;
  const auto info = store.run({"INFO", "server"}).get();
  return "." + info.as_text().substr(info.as_text().find(name) + name.size(), size);
}

/// Whether the database's id for the store is this one's, or was: a database may have been rolled
/// back. A process may have died after it had renewed it there and before it had here.
bool is_mine(const std::string& there, const std::string& here, const std::string& tried) {
  if (there == here || tried.find(there) != std::string::npos) return true;
  return is_copy(there, here) && openings(there) < openings(here);
}

bool is_beside(const std::string& place, const std::string& here) {
  std::error_code none;
  const auto there = folder_of(place);
  return !there.empty() && std::filesystem::is_directory(there / "appendonlydir", none) &&
         !std::filesystem::equivalent(there, folder_of(here), none);
}

std::string text_of(const Value& field) {
  return field.is_null() ? std::string{} : field.as_text();
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

bool is_folder(Store& store) { return !folder_of(store.describe()).empty(); }

std::string later_id(const std::string& one, const std::string& other) {
  return is_copy(one, other) && openings(other) > openings(one) ? other : one;
}

void renew_id(Store& store, const std::string& sale, OrderStore& orders) {
  if (!is_folder(store)) return;
  const SaleKeys keys{sale};
  const auto known = store.run({"HMGET", keys.sale, "home", "database", "tried"}).get();
  const auto& fields = known.as_items();
  const auto word = word_of_opening(store);
  const auto home = text_of(fields.at(0));
  if (home.empty() || home.ends_with(word)) return;
  const auto there = orders.store_of(sale).value_or(StoreOfSale{});
  const auto database = text_of(fields.at(1));
  const auto tried = text_of(fields.at(2));
  const bool is_other =
      !database.empty() && database.substr(0, database.find(' ')) != orders.identity();
  if (is_other || (!there.id.empty() && !is_mine(there.id, home, tried))) return;  // attach() says
  StoreOfSale here{.id = there.id, .place = store.describe()};
  if (there.place != here.place && is_beside(there.place, here.place)) {
    here.id = home;
    throw another_store(sale, orders.describe(), there, here);
  }
  if (!here.id.ends_with(word))
    here.id = fmt::format("{}.{:08}{}", home.substr(0, root_size),
                          std::max(openings(home), openings(there.id)) + 1, word);
  constexpr std::size_t most_tried = 330;
  const auto all = (here.id + " " + tried).substr(0, most_tried);
  store.run({"HSET", keys.sale, "tried", all}).get();
  if (!there.id.empty() && !orders.renew_store(sale, there.id, here))
    throw another_store(sale, orders.describe(), orders.store_of(sale).value_or(there), here);
  store.run({"HSET", keys.sale, "home", here.id}).get();
  store.run({"HDEL", keys.sale, "tried"}).get();
}

bool is_sold_here(Store& store, const std::string& sale, OrderStore& orders,
                  const StoreOfSale& here) {
  const auto there = orders.store_of(sale);
  if (!there) return true;
  if (!there->id.empty()) {
    if (!is_folder(store)) return there->id == here.id;
    const auto known = store.run({"HMGET", SaleKeys{sale}.sale, "home", "tried"}).get();
    const bool is_lost = known.as_items().at(0).is_null();  // the sale, and not the store
    return is_mine(there->id, here.id, text_of(known.as_items().at(1))) ||
           (is_lost && is_copy(there->id, here.id));
  }
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
                  here.id.empty() ? here.place + ", which knows no sale"
                  : is_copy(there.id, here.id)
                      ? named(here) + ", a copy of that one, or of an earlier state of it"
                      : named(here),
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
