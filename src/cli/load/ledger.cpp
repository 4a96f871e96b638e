#include "cli/load/ledger.hpp"

#include <fmt/format.h>

#include "cli/load/legible.hpp"

namespace sluice::load {
namespace {

/// No sale has more units, so that their sums stay far from where integers end.
constexpr std::int64_t most_units = 1'000'000'000'000;
constexpr std::size_t longest_word = 128;
constexpr std::size_t longest_evidence = 500;

bool is_word(const std::string* text) {
  return text && !text->empty() && text->size() <= longest_word;
}

}  // namespace

std::optional<ToldOrder> ToldOrder::of(const JsonValue& body) {
  const auto text = [&](std::string_view name) -> const std::string* {
    const auto* const value = body.find(name);
    return value ? value->as_text() : nullptr;
  };
  const auto* const units = body.find("units");
  const auto* const id = text("id");
  const auto* const number = text("number");
  if (!is_word(id) || !is_word(number) || !units || !units->as_integer()) return {};
  if (*units->as_integer() < 1 || *units->as_integer() > most_units) return {};
  return ToldOrder{.id = *id, .number = *number, .units = *units->as_integer()};
}

std::string to_string(const ToldOrder& order) {
  return fmt::format("{} (id {}, {} unit{})", order.number, order.id, order.units,
                     order.units == 1 ? "" : "s");
}

std::optional<ToldSale> ToldSale::of(const JsonValue& body) {
  const auto figure = [&](std::string_view name) -> const std::int64_t* {
    const auto* const value = body.find(name);
    return value ? value->as_integer() : nullptr;
  };
  const auto* const stock = figure("stock");
  const auto* const sold = figure("sold");
  const auto is_figure = [](const std::int64_t* one) {
    return one && *one >= 0 && *one <= most_units;
  };
  if (!is_figure(stock) || !is_figure(sold)) return {};
  return ToldSale{.stock = *stock, .sold = *sold, .has_price = body.find("price") != nullptr};
}

void Ledger::broken(std::string_view promise, std::string_view evidence) {
  ++breaches_;
  if (evidence_.size() < most_kept)
    evidence_.push_back({std::string{promise}, legible(evidence, longest_evidence)});
}

const Ledger::Entry* Ledger::find(const std::string& buyer) const {
  const auto found = orders_.find(buyer);
  return found == orders_.end() ? nullptr : &found->second;
}

void Ledger::told(const std::string& buyer, const std::string& key, std::int64_t asked_units,
                  const ToldOrder& order) {
  if (order.units != asked_units)
    broken("an order has the units that were asked for",
           fmt::format("buyer {}, key {}: asked for {}, told of {}", buyer, key, asked_units,
                       to_string(order)));
  const auto [entry, is_new] = orders_.try_emplace(buyer, Entry{key, order});
  if (!is_new) {
    if (entry->second.order != order)
      broken("the same key gets the same order",
             fmt::format("buyer {}, key {}: told of {}, then of {}", buyer, key,
                         to_string(entry->second.order), to_string(order)));
    return;
  }
  units_ += order.units;
  const auto claim = [&](auto& owners, const std::string& value, std::string_view promise) {
    const auto [owner, is_free] = owners.try_emplace(value, buyer);
    if (!is_free)
      broken(promise,
             fmt::format("{} was told to buyer {}, then to buyer {}", value, owner->second, buyer));
  };
  claim(numbers_, order.number, "an order number is given once");
  claim(ids_, order.id, "an order id is given once");
}

void Ledger::refused(const std::string& buyer, const std::string& key, const std::string& problem) {
  const auto* const entry = find(buyer);
  if (!entry) return;
  broken("the same key gets the same order",
         fmt::format("buyer {}, key {}: told of {}, then refused as {}", buyer, key,
                     to_string(entry->order), problem));
}

void Ledger::shown(const std::string& buyer, const std::optional<ToldOrder>& order,
                   std::string_view why) {
  const auto* const entry = find(buyer);
  if (entry && (!order || *order != entry->order))
    broken("an order that was told stands",
           fmt::format("buyer {}: told of {}, {}", buyer, to_string(entry->order),
                       order ? fmt::format("shown {}", to_string(*order)) : std::string{why}));
}

void Ledger::compare(const ToldSale& before, const ToldSale& after, bool alone) {
  if (before.has_price || after.has_price) return;  // what was not paid is sold again
  if (after.sold > after.stock)
    broken("no more units are sold than there are",
           fmt::format("the sale says that it sold {} of {}", after.sold, after.stock));
  if (!alone) return;
  if (units_ > after.stock)
    broken("no more units are sold than there are",
           fmt::format("{} units were told, and the stock is {}", units_, after.stock));
  const auto sold = after.sold - before.sold;
  if (sold < units_)
    broken(
        "the sale counts what buyers were told",
        fmt::format("{} units were told, and the sale counts {} more than before", units_, sold));
  if (sold > units_ + open_units_)
    broken("the sale counts what buyers were told",
           fmt::format("the sale counts {} units more than before; {} were told, and {} were asked "
                       "for without an answer",
                       sold, units_, open_units_));
}

}  // namespace sluice::load
