#include "sale/differences.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::sale {
namespace {

/// One row a field of an order.
struct Field {
  std::string_view name;
  std::string (*write)(const SaleOrder&);
};

constexpr Field fields[] = {
    {"number", [](const SaleOrder& order) { return shown(order.number); }},
    {"id", [](const SaleOrder& order) { return fmt::to_string(order.id); }},
    {"units", [](const SaleOrder& order) { return fmt::to_string(order.units); }},
    {"buyer", [](const SaleOrder& order) { return shown(order.buyer.value); }},
    {"n", [](const SaleOrder& order) { return fmt::to_string(order.n); }},
    {"issued_us",
     [](const SaleOrder& order) {
       return fmt::to_string(order.issued_at.time_since_epoch().count());
     }},
    {"request", [](const SaleOrder& order) { return shown(order.request.value); }},
    {"state", [](const SaleOrder& order) { return std::string{to_string(order.state)}; }},
};

}  // namespace

void Differences::add(std::string_view check, std::string where, std::string what,
                      std::string in_store, std::string elsewhere) {
  ++counts_.try_emplace(std::string{check}).first->second;
  if (named_.size() < most_)
    named_.push_back({.check = std::string{check},
                      .where = std::move(where),
                      .what = std::move(what),
                      .in_store = std::move(in_store),
                      .elsewhere = std::move(elsewhere)});
}

bool Differences::compare(std::string_view check, const SaleOrder& in_store,
                          const SaleOrder& elsewhere) {
  if (in_store == elsewhere) return true;
  for (const auto& field : fields) {
    auto one = field.write(in_store);
    auto other = field.write(elsewhere);
    if (one != other)
      add(check, place_of(in_store), std::string{field.name}, std::move(one), std::move(other));
  }
  return false;
}

std::int64_t Differences::count(std::string_view check) const {
  const auto found = counts_.find(check);
  return found == counts_.end() ? 0 : found->second;
}

std::string Differences::summary(std::string_view check) const {
  constexpr int examples = 3;
  std::string text;
  int given = 0;
  for (const auto& difference : named_) {
    if (difference.check != check) continue;
    if (++given > examples) break;
    text += (text.empty() ? "" : "; ") + to_string(difference);
  }
  return text;
}

std::string place_of(const SaleOrder& order) {
  return fmt::format("order {}, id {}, buyer '{}'", shown(order.number), order.id,
                     shown(order.buyer.value));
}

std::string shown(std::string_view bytes) {
  constexpr std::size_t longest = 100;
  std::string text;
  for (const char c : bytes.substr(0, longest)) {
    if (c < 0x20 || c > 0x7e || c == '\\')
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return bytes.size() > longest ? text + "..." : text;
}

}  // namespace sluice::sale

std::string sluice::to_string(const AuditDifference& difference) {
  const auto value = [](const std::string& text) { return text.empty() ? "nothing" : text; };
  return fmt::format("{}: {} is {} in the store and {} elsewhere", difference.where,
                     difference.what, value(difference.in_store), value(difference.elsewhere));
}
