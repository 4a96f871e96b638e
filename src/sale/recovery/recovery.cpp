#include "sale/recovery/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/archive.hpp"
#include "sale/buckets/shares.hpp"
#include "sale/order_queue.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/store_of_sale.hpp"

std::optional<sluice::SaleRecovery> sluice::sale::recover_if_needed(Store& store,
                                                                    const std::string& name,
                                                                    OrderStore& orders) {
  const SaleKeys keys{name};
  const auto needed =
      store.run(scripts::sale_needs_recovery, {keys.sale, keys.recovery}, {}, repeatable).get();
  if (needed.as_integer() == 0 || orders.definition(name).empty()) return std::nullopt;
  constexpr std::int64_t share_alone = 2;
  if (needed.as_integer() == share_alone) {
    if (const auto bucket = read_definition(store, name).get()) restore_shares(store, *bucket);
    return std::nullopt;
  }
  refuse_copy(store, name, orders);
  return recover(store, name, orders);
}

namespace sluice::sale {
namespace {

/// What shut the sale, by its field `recovering`.
std::string reason_of(const Value& shut) {
  if (shut.is_null()) return {};
  if (shut.as_text() == shut_as_lost) return "its store had lost orders";
  if (shut.as_text() == shut_as_rolled_back) return "its database had lost what it had committed";
  if (shut.as_text() == shut_as_fenced) return "it was sold in another store";
  return "an earlier recovery had not ended";
}

/// This store, with the id that the database knows it by after the recovery. What the sale had is
/// fenced, where it is another one.
StoreOfSale store_to_recover(Store& store, const std::string& name, OrderStore& orders,
                             bool may_be_new) {
  auto here = store_of_sale(store, name);
  const auto reason = store.run({"HGET", SaleKeys{name}.sale, "recovering"}).get();
  const bool is_fenced = !reason.is_null() && reason.as_text() == shut_as_fenced;
  const bool is_same = !is_fenced && is_sold_here(store, name, orders, here);
  const auto there = orders.store_of(name).value_or(StoreOfSale{});
  if (!is_same && !may_be_new) throw another_store(name, orders.describe(), there, here);
  if (is_same && !here.id.empty()) {
    here.id = later_id(here.id, there.id);
    return here;
  }
  here.id = id_of_store(store).get();
  // That is its copy's, too.
  if (here.id == there.id || is_folder(store)) here.id = random_hex_128();
  return here;
}

/// Of an archived sale the store has no orders: its database goes on as it is, and has come further
/// than ever. `archived`: when, as the hash has it.
SaleRecovery accept_database(Store& store, const SaleDefinition& sale, OrderStore& orders,
                             const StoreOfSale& here, const std::string& archived) {
  const SaleKeys keys{sale.name};
  orders.add_sale(sale.name, sale.stock);
  const auto known = store.run({"HGET", keys.sale, "epoch"}).get();
  const auto above = parse_integer<std::int64_t>(known.is_null() ? "0" : known.as_text());
  const auto epoch = orders.begin_epoch(sale.name, above.value_or(0), here, random_hex_128());
  orders.keep_definition(sale.name, {{"closed", "1"}, {"archived", archived}});
  const auto begun = fmt::to_string(epoch);
  const auto mark = orders.mark(sale.name);
  store.run({"HSET", keys.sale, "home", here.id, "epoch", begun, "mark", mark}).get();
  store.run({"HDEL", keys.sale, rolled_back_field}).get();
  flag_orphans(sale.name, orders.payments());
  return {.in_database = orders.totals(sale.name).orders};
}

}  // namespace
}  // namespace sluice::sale

sluice::SaleRecovery sluice::recover(Store& store, const std::string& name, OrderStore& orders,
                                     RecoveryOptions options) {
  sale::check_name(name);
  const auto kept = orders.definition(name);
  std::optional<SaleDefinition> definition;
  try {
    definition = sale::read_definition(store, name).get();
  } catch (const Error& damaged) {
    if (damaged.errc() != Errc::corrupt || kept.empty()) throw;
  }
  const bool is_readable = definition.has_value();
  const sale::SaleKeys keys{name};
  const auto known = store.run({"HMGET", keys.sale, "archived", "database", "recovering"}).get();
  if (!definition && kept.empty())
    throw Error{
        Errc::bad_argument,
        fmt::format("neither {} nor {} knows how sale '{}' is defined: create it again as it "
                    "was, and recover it then",
                    store.describe(), orders.describe(), name)};
  if (!definition) definition = sale::definition_of(name, kept);
  const auto& database = known.as_items().at(1);
  if (!database.is_null() && !options.new_database &&
      !sale::is_same_database(database.as_text(), sale::database_word(orders)))
    sale::attach(store, *definition, orders);  // says which
  auto here = sale::store_to_recover(store, name, orders, options.new_store);
  if (const auto& archived = known.as_items().at(0); !archived.is_null())
    return sale::accept_database(store, *definition, orders, here, archived.as_text());
  auto done = sale::Recovery{store, *definition, orders, std::move(here), !is_readable}.run(kept);
  done.reason = sale::reason_of(known.as_items().at(2));
  const bool was_archived =
      std::ranges::any_of(kept, [](const auto& field) { return field.first == "archived"; });
  if (was_archived && done.on_the_way == 0) Sale::load(store, name).get()->archive(orders);
  return done;
}
