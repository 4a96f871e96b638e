#include "cli/sales_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "base/duration.hpp"
#include "base/instant.hpp"
#include "base/json_value.hpp"
#include "base/text.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t longest_file = 1 << 20;

/// What is wrong with a value is thrown as a text.
struct Wrong {
  std::string what;
};

std::string text_of(const JsonValue& value) {
  if (const auto* const text = value.as_text()) return *text;
  throw Wrong{"a text in quotes is needed"};
}

std::int64_t integer_of(const JsonValue& value) {
  if (const auto* const number = value.as_integer()) return *number;
  throw Wrong{"an integer without quotes is needed"};
}

WallTime instant_of(const JsonValue& value) {
  const auto instant = parse_instant(text_of(value));
  if (!instant)
    throw Wrong{fmt::format("'{}' is no instant: write {}", text_of(value), instant_form)};
  return *instant;
}

std::chrono::microseconds duration_of(const JsonValue& value) {
  const auto time = parse_duration(text_of(value), std::chrono::seconds{1});
  if (!time) throw Wrong{fmt::format("'{}' is no time: write {}", text_of(value), duration_form)};
  return *time;
}

PaymentTerms& terms(PlannedSale& sale) {
  auto& payment = sale.definition.payment;
  return payment ? *payment : payment.emplace();
}

struct Key {
  std::string_view name;
  void (*set)(PlannedSale&, const JsonValue&);
};

constexpr Key keys[] = {
    {"name",
     [](PlannedSale& sale, const JsonValue& value) { sale.definition.name = text_of(value); }},
    {"stock",
     [](PlannedSale& sale, const JsonValue& value) { sale.definition.stock = integer_of(value); }},
    {"type", [](PlannedSale& sale,
                const JsonValue& value) { sale.definition.number_type = text_of(value); }},
    {"buckets",
     [](PlannedSale& sale, const JsonValue& value) {
       sale.buckets = integer_of(value);
       if (sale.buckets < 1 || sale.buckets > most_buckets)
         throw Wrong{fmt::format("{} buckets, it must be 1 to {}", sale.buckets, most_buckets)};
     }},
    {"opens", [](PlannedSale& sale,
                 const JsonValue& value) { sale.definition.opens_at = instant_of(value); }},
    {"closes", [](PlannedSale& sale,
                  const JsonValue& value) { sale.definition.closes_at = instant_of(value); }},
    {"limit",
     [](PlannedSale& sale, const JsonValue& value) { sale.definition.limit = integer_of(value); }},
    {"unit-limit", [](PlannedSale& sale,
                      const JsonValue& value) { sale.definition.unit_limit = integer_of(value); }},
    {"largest-order",
     [](PlannedSale& sale, const JsonValue& value) {
       sale.definition.largest_order = integer_of(value);
     }},
    {"price",
     [](PlannedSale& sale, const JsonValue& value) { terms(sale).price = integer_of(value); }},
    {"currency",
     [](PlannedSale& sale, const JsonValue& value) { terms(sale).currency = text_of(value); }},
    {"pay-within",
     [](PlannedSale& sale, const JsonValue& value) { terms(sale).window = duration_of(value); }},
    {"grace",
     [](PlannedSale& sale, const JsonValue& value) { terms(sale).grace = duration_of(value); }},
    {"zone",
     [](PlannedSale& sale, const JsonValue& value) { sale.definition.zone = text_of(value); }},
    {"digits",
     [](PlannedSale& sale, const JsonValue& value) {
       sale.definition.digits =
           static_cast<int>(std::clamp<std::int64_t>(integer_of(value), 0, 99));
     }},
};

const Key& key_named(const std::string& name) {
  const Key* nearest = keys;
  for (const auto& key : keys) {
    if (key.name == name) return key;
    if (edit_distance(key.name, name) < edit_distance(nearest->name, name)) nearest = &key;
  }
  throw Wrong{fmt::format("a sale has no '{}'; did you mean '{}'?", name, nearest->name)};
}

PlannedSale sale_of(const JsonValue& object) {
  const auto* const members = object.as_object();
  if (!members) throw Wrong{"a sale stands in braces, {\"name\": ...}"};
  PlannedSale sale;
  for (const auto& [name, value] : *members) {
    const auto& key = key_named(name);
    try {
      key.set(sale, value);
    } catch (const Wrong& wrong) {
      throw Wrong{fmt::format("{}: {}", name, wrong.what)};
    }
  }
  for (const auto* const needed : {"name", "stock", "type"})
    if (!object.find(needed)) throw Wrong{fmt::format("this sale has no '{}'", needed)};
  return sale;
}

/// No two sales share a name, or a type: both would give the same numbers.
void need_of_its_own(const SaleDefinition& sale, const std::vector<PlannedSale>& before) {
  for (const auto& [other, buckets] : before) {
    if (other.name == sale.name) throw Wrong{fmt::format("sale '{}' stands twice", sale.name)};
    if (other.number_type == sale.number_type)
      throw Wrong{
          fmt::format("type '{}' is that of sale '{}', too: both would give the same numbers",
                      other.number_type, other.name)};
  }
}

}  // namespace

std::vector<PlannedSale> parse_sales(std::string_view text, const std::string& file) {
  const auto all = JsonValue::parse(text, {.bytes = longest_file, .depth = 4});
  if (!all) throw Error{Errc::bad_argument, file + behind_file(text, all.error())};
  if (!all->as_array())
    throw Error{Errc::bad_argument, fmt::format("{}: sales stand in brackets, [{{...}}]", file)};
  std::vector<PlannedSale> sales;
  for (const auto& item : *all->as_array()) try {
      auto sale = sale_of(item);
      need_of_its_own(sale.definition, sales);
      sales.push_back(std::move(sale));
    } catch (const Wrong& wrong) {
      throw Error{Errc::bad_argument,
                  fmt::format("{}: sale {}: {}", file, sales.size() + 1, wrong.what)};
    }
  return sales;
}

std::vector<PlannedSale> read_sales(const std::string& file) {
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& input = file == "-" ? std::cin : opened;
  if (!input) throw Error{Errc::bad_argument, fmt::format("{}: {}", file, std::strerror(errno))};
  std::string text(longest_file + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  if (input.bad())
    throw Error{Errc::bad_argument, fmt::format("{}: {}", file, std::strerror(errno))};
  if (text.size() > longest_file)
    throw Error{Errc::bad_argument, fmt::format("{}: longer than 1 MiB", file)};
  return parse_sales(text, file);
}

}  // namespace sluice::cli
