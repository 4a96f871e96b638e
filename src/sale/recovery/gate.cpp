// The gate that is shut while a sale is recovered, and the steps between.
#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/buckets/shares.hpp"
#include "sale/order_queue.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/recovery/recovery.hpp"
#include "sale/settlement.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {
namespace {

/// What the store counts; 0 where it cannot be that.
std::int64_t figure_or_zero(const Value& text) {
  const auto figure = parse_integer<std::int64_t>(text.as_text()).value_or(0);
  return figure > 0 && figure <= most_units ? figure : 0;
}

}  // namespace

/// No worker begins one of its own while this one goes on.
void Recovery::stay_known() {
  constexpr std::chrono::seconds often_enough{5};
  if (store_.clock().steady() < known_since_ + often_enough) return;
  known_since_ = store_.clock().steady();
  store_.run({"PEXPIRE", keys_.recovery, "20000"}, repeatable).get();
}

void Recovery::check_mine(bool is_mine) const {
  if (!is_mine)
    throw Error{
        Errc::server,
        fmt::format("sale '{}': another recovery of it has begun; it opens the gate", sale_.name)};
}

/// Lane, birth and end of the sale are those of the database: of a sale that was lost and made
/// again, too. The definition is where the store's can not be read.
void Recovery::close_gate(const OrderStore::Fields& kept) {
  Pairs fields{{"home", here_.id}};
  const auto is_always = [&](const auto& field) {
    if (mends_definition_) return field.first != "archived";
    return field.first == "lane" || field.first == "born" || field.first == "closed" ||
           field.first == "database";
  };
  if (std::ranges::find(kept, "database", [](const auto& field) { return field.first; }) ==
      kept.end())
    fields.emplace_back("database", database_word(orders_));
  std::ranges::copy_if(kept, std::back_inserter(fields), is_always);
  const auto always = fmt::to_string(fields.size());
  std::ranges::copy_if(kept, std::back_inserter(fields), [&](const auto& field) {
    return !is_always(field) && field.first != "archived";
  });
  fields.emplace_back("capacity", fmt::to_string(sale_.stock));
  const auto epoch = store_.run({"HGET", keys_.sale, "epoch"}).get();
  std::vector<std::string_view> args{group, token_, always,
                                     epoch.is_null() ? std::string_view{} : epoch.as_text()};
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys_.sale, keys_.orders, keys_.recovery};
  const auto reply =
      store_.run(scripts::sale_begin_recovery, Words{names}, Words{args}, repeatable).get();
  check_mine(!reply.is_null());
  const auto& there = reply.as_items();
  this_store_ = there.at(0).as_text();
  done_.made_again = there.at(1).as_integer() == 1;
  store_stock_ = figure_or_zero(there.at(2));
  store_changes_ = figure_or_zero(there.at(3));
  epoch_ = figure_or_zero(there.at(4));
  is_closed_ = !there.at(5).as_text().empty();
}

/// The lane of the sale, or a new one where the store, which had lost it, has given it away.
Recovery::Pairs Recovery::lane(const OrderStore::Fields& kept) {
  const auto found = std::ranges::find(kept, "lane", [](const auto& field) { return field.first; });
  if (found == kept.end()) {
    store_.run({"HSETNX", types_key, sale_.number_type, sale_.name}, repeatable).get();
    return {};
  }
  const auto& lane = found->second;
  list_again(store_, sale_.name, sale_.number_type, lane);
  const auto owners = store_.run({"ZRANGEBYSCORE", names_key, lane, lane}).get();
  const bool is_taken = std::ranges::any_of(
      owners.as_items(), [&](const Value& name) { return name.as_text() != sale_.name; });
  if (!is_taken) return {};
  const auto other = take_lane(store_, sale_.name, true).get();
  orders_.change_definition(sale_.name, "lane", other);
  return {{"lane", other}};
}

void Recovery::open_gate(const Count& all, const OrderStore::Fields& kept) {
  Pairs fields{{"sold", fmt::to_string(all.sold)},
               {"orders", fmt::to_string(all.orders)},
               {"given_back", fmt::to_string(all.given_back)},
               {"buyer_gaps", fmt::to_string(all.buyer_gaps)},
               {"epoch", fmt::to_string(std::max(epoch_, orders_.epoch(sale_.name)))},
               {"recovered", orders_.describe()}};
  for (const auto& more : {stock(all), numbers(), lane(kept)})
    fields.insert(fields.end(), more.begin(), more.end());
  std::vector<std::string_view> args{token_, this_store_};
  for (const auto& [field, value] : fields) args.insert(args.end(), {field, value});
  const std::vector<std::string_view> names{keys_.sale, keys_.recovery};
  const auto answer =
      store_.run(scripts::sale_end_recovery, Words{names}, Words{args}, {}).get().as_integer();
  check_mine(answer != 0);
  if (answer < 0)
    throw Error{Errc::server,
                fmt::format("sale '{}': {} changed again while the sale was recovered; recover it "
                            "once more",
                            sale_.name, store_.describe())};
}

SaleRecovery Recovery::run(const OrderStore::Fields& kept) {
  try {
    return carry_out(kept);
  } catch (...) {
    make_way();
    throw;
  }
}

void Recovery::make_way() noexcept {
  try {
    store_.run(scripts::sale_drop_recovery, {keys_.recovery}, {token_}, repeatable).get();
  } catch (const std::exception&) {  // its mark ends by itself
  }
}

SaleRecovery Recovery::carry_out(OrderStore::Fields kept) {
  orders_.add_sale(sale_.name, sale_.stock);
  close_gate(kept);
  epoch_ = orders_.begin_epoch(sale_.name, epoch_, here_, token_);
  enter(store_, sale_, orders_);  // a database that is new, or older, learns the definition
  kept = orders_.definition(sale_.name);
  if (is_closed_) orders_.keep_definition(sale_.name, {{"closed", "1"}});
  restore_orders();
  reconcile_streams();
  restore_earlier_orders();
  bring_on_the_way();
  tell_parts();
  const auto all = count();
  in_parts(all.miscounted, [&](Words args) {
    const std::vector<std::string_view> names{keys_.sale, keys_.buyers};
    check_mine(
        store_.run(scripts::sale_recount, Words{names}, args, repeatable).get().as_integer() == 1);
  });
  restore_returned(all);
  open_gate(all, kept);
  // Where another bucket is lost, too, the last of them restores all shares.
  if (sale_.bucket && !restore_shares(store_, sale_)) return done_;
  Settlement{store_, sale_, orders_}.settle();  // what was begun and not done before
  return done_;
}

}  // namespace sluice::sale
