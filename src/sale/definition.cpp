#include "sale/definition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sale/payment_terms.hpp"
#include "sale/recovery.lua.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t longest_name = 128;
constexpr std::size_t longest_type = 16;
constexpr int most_digits = 12;

/// The seconds of an id have 31 bits.
constexpr WallTime end_of_ids = IdWorker::epoch + std::chrono::seconds{0x8000'0000};

using Definition = SaleDefinition;

std::int64_t integer_of(std::string_view text) {
  const auto number = parse_integer<std::int64_t>(text);
  if (!number) throw Error{Errc::corrupt, fmt::format("'{}' is not an integer", text)};
  return *number;
}

std::string text_of(const std::optional<WallTime>& instant) {
  return instant ? fmt::to_string(instant->time_since_epoch().count()) : std::string{};
}

std::optional<WallTime> instant_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return WallTime{std::chrono::microseconds{integer_of(text)}};
}

constexpr std::string_view defined = "defined";  // the stock: see `format`

std::string text_of(const BucketPlace& place) {
  return fmt::format("{} {} {}", place.index, place.count, place.stock);
}

/// One row a field: its name in the hash, how it is written and read.
struct HashField {
  std::string_view name;
  std::string (*write)(const Definition&);
  void (*read)(Definition&, const std::string&);
  bool may_be_missing = false;  ///< where it would be empty: sales of older versions have none
};

constexpr HashField hash_fields[] = {
    {defined, [](const Definition& d) { return fmt::to_string(d.stock); },
     [](Definition& d, const std::string& text) { d.stock = integer_of(text); }},
    {"opens", [](const Definition& d) { return text_of(d.opens_at); },
     [](Definition& d, const std::string& text) { d.opens_at = instant_of(text); }},
    {"closes", [](const Definition& d) { return text_of(d.closes_at); },
     [](Definition& d, const std::string& text) { d.closes_at = instant_of(text); }},
    {"limit", [](const Definition& d) { return fmt::to_string(d.limit); },
     [](Definition& d, const std::string& text) { d.limit = integer_of(text); }},
    {"unit_limit", [](const Definition& d) { return fmt::to_string(d.unit_limit); },
     [](Definition& d, const std::string& text) { d.unit_limit = integer_of(text); }},
    {"largest", [](const Definition& d) { return fmt::to_string(d.largest_order); },
     [](Definition& d, const std::string& text) { d.largest_order = integer_of(text); }},
    {"type", [](const Definition& d) { return d.number_type; },
     [](Definition& d, const std::string& text) { d.number_type = text; }},
    {"zone", [](const Definition& d) { return d.zone; },
     [](Definition& d, const std::string& text) { d.zone = text; }},
    {"digits", [](const Definition& d) { return fmt::to_string(d.digits); },
     [](Definition& d, const std::string& text) {
       d.digits = static_cast<int>(std::clamp<std::int64_t>(integer_of(text), 0, 99));
     }},
    {payment_field,
     [](const Definition& d) { return d.payment ? sale::text_of(*d.payment) : std::string{}; },
     [](Definition& d, const std::string& text) { d.payment = terms_of(text); }, true},
    {bucket_field,
     [](const Definition& d) { return d.bucket ? text_of(*d.bucket) : std::string{}; },
     [](Definition& d, const std::string& text) { d.bucket = place_of(text); }, true},
};

bool is_type_character(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
         c == '_';
}

void check_range(const Definition& sale, std::string_view field, std::int64_t value,
                 std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw Error{Errc::bad_argument, fmt::format("sale '{}': {} is {}, it must be {} to {}",
                                                sale.name, field, value, least, most)};
}

/// What a bucket may be: in its beginning it has some of the stock, later it may have all.
void check_place(const Definition& sale, const BucketPlace& place) {
  check_range(sale, "buckets", place.count, 2, most_buckets);
  check_range(sale, "index of the bucket", place.index, 0, place.count - 1);
  check_range(sale, "stock of all buckets", place.stock, sale.stock, most_units);
}

/// Each field by itself.
void check_fields(const Definition& sale) {
  check_range(sale, "stock", sale.stock, 0, most_units);
  check_range(sale, "limit", sale.limit, 0, most_units);
  check_range(sale, "unit_limit", sale.unit_limit, 0, most_units);
  check_range(sale, "largest_order", sale.largest_order, 0, most_units);
  check_range(sale, "digits", sale.digits, 1, most_digits);
  const auto& type = sale.number_type;
  if (type.empty() || type.size() > longest_type ||
      !std::all_of(type.begin(), type.end(), is_type_character))
    throw Error{
        Errc::bad_argument,
        fmt::format(
            "sale '{}': number_type is '{}', it must be 1 to {} letters, digits, '-' or '_'",
            sale.name, type, longest_type)};
  if (sale.bucket) check_place(sale, *sale.bucket);
}

}  // namespace

std::optional<BucketPlace> place_of(std::string_view text) {
  BucketPlace place;
  for (auto* const part : {&place.index, &place.count, &place.stock}) {
    const auto end = std::min(text.find(' '), text.size());
    *part = integer_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return place;
}

void check_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name)
    throw Error{Errc::bad_argument,
                fmt::format("the name of a sale has {} bytes, it must have 1 to {}", name.size(),
                            longest_name)};
  if (name.find_first_of("{}") != std::string_view::npos)
    throw Error{
        Errc::bad_argument,
        fmt::format("sale '{}': a name has no braces, they mark the slot in Redis Cluster", name)};
  if (name == "*")
    throw Error{Errc::bad_argument, "a sale is not called '*': a token for '*' is for all sales"};
}

void check(const SaleDefinition& sale) {
  check_name(sale.name);
  check_fields(sale);
  if (sale.opens_at && sale.closes_at && *sale.opens_at >= *sale.closes_at)
    throw Error{Errc::bad_argument, fmt::format("sale '{}' closes before it opens", sale.name)};
  if (sale.opens_at && *sale.opens_at >= end_of_ids)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}' opens after 2092-01-19, when ids end", sale.name)};
  check_numbers(sale, sale.bucket ? sale.bucket->stock : sale.stock);
  if (sale.payment) check(*sale.payment, sale.name);
}

std::int64_t numbers_of(const SaleDefinition& sale) noexcept {
  std::int64_t numbers = 1;
  for (int i = 0; i < sale.digits; ++i) numbers *= 10;
  return numbers - 1;
}

void check_numbers(const SaleDefinition& sale, std::int64_t stock) {
  const auto numbers = numbers_of(sale);
  if (stock <= numbers) return;
  const auto needed = fmt::to_string(stock).size();
  throw Error{Errc::bad_argument,
              fmt::format("sale '{}': {} units can be {} orders on one day, and {} digit(s) number "
                          "only {}; {}",
                          sale.name, stock, stock, sale.digits, numbers,
                          needed <= most_digits ? fmt::format("use {} digits", needed)
                                                : "sell fewer in one sale")};
}

std::vector<std::pair<std::string, std::string>> fields_of(const SaleDefinition& definition) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& field : hash_fields)
    if (auto text = field.write(definition); !text.empty() || !field.may_be_missing)
      all.emplace_back(field.name, std::move(text));
  return all;
}

Task<std::optional<SaleDefinition>> read_definition(Store& store, std::string name) {
  const SaleKeys keys{name};
  std::vector<std::string_view> words{"HMGET", keys.sale, "format", "stock"};
  for (const auto& field : hash_fields) words.push_back(field.name);
  const Value reply = co_await store.run(Words{words});
  const auto& values = reply.as_items();
  const auto& there = values.at(0);
  if (there.is_null() && values.at(1).is_null()) co_return std::nullopt;
  if (there.is_null() || there.as_text() != format)
    throw Error{
        Errc::config_mismatch,
        fmt::format("sale '{}' lies in {} as {} version of Sluice keeps it (format {}, here "
                    "{}): sell and audit it with that version to its end, and use another "
                    "name here",
                    name, store.describe(), there.is_null() ? "an older" : "another",
                    there.is_null() ? "1" : there.as_text(), format)};
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 0; i < std::size(hash_fields); ++i)
    if (!values.at(2 + i).is_null()) all.emplace_back(hash_fields[i].name, values[2 + i].as_text());
  co_return definition_of(std::move(name), all);
}

SaleDefinition definition_of(std::string name,
                             const std::vector<std::pair<std::string, std::string>>& all) {
  SaleDefinition definition{.name = std::move(name)};
  for (const auto& field : hash_fields) {
    try {
      const auto found = std::ranges::find(
          all, field.name, [](const auto& one) { return std::string_view{one.first}; });
      if (found == all.end() && field.may_be_missing) continue;
      if (found == all.end()) throw Error{Errc::corrupt, "it is missing"};
      field.read(definition, found->second);
    } catch (const Error& error) {
      throw Error{Errc::corrupt, fmt::format("sale '{}': its field {} is damaged: {}",
                                             definition.name, field.name, error.message())};
    }
  }
  try {
    check_fields(definition);
  } catch (const Error& error) {
    throw Error{Errc::corrupt, "a definition is damaged: " + error.message()};
  }
  return definition;
}

Task<std::string> take_lane(Store& store, std::string name, bool anew) {
  constexpr std::int64_t lanes = 4095;
  auto asked = store.run({"INCR", lanes_key}, repeatable);
  const Value count = co_await asked;
  const auto place = fmt::to_string(count.as_integer());
  auto entered = store.run({"ZADD", names_key, anew ? "GT" : "NX", place, name}, repeatable);
  co_await entered;
  co_return fmt::to_string((count.as_integer() - 1) % lanes + 1);
}

void list_again(Store& store, const std::string& name, const std::string& type,
                const std::string& lane) {
  store.run({"HSETNX", types_key, type, name}, repeatable).get();
  store.run(scripts::sale_raise_lanes, {lanes_key}, {lane}, repeatable).get();
  store.run({"ZADD", names_key, "NX", lane, name}, repeatable).get();
}

void list_again(Store& store, const std::string& name) {
  const SaleKeys keys{name};
  const auto reply = store.run({"HMGET", keys.sale, "type", "lane"}).get();
  const auto& there = reply.as_items();
  if (there.at(0).is_null() || there.at(1).is_null()) return;
  list_again(store, name, there[0].as_text(), there[1].as_text());
}

std::string store_id(const Value& info) {
  constexpr std::string_view name = "master_replid:";
  if (info.is_error()) return {};
  const std::string_view text = info.as_text();
  const auto at = text.find(name);
  if (at == text.npos) return {};
  const auto id = text.substr(at + name.size());
  return std::string{id.substr(0, std::min(id.find_first_not_of("0123456789abcdef"), id.size()))};
}

std::string difference(const SaleDefinition& there, const SaleDefinition& here) {
  std::string text;
  for (const auto& field : hash_fields) {
    const auto was = field.write(there);
    const auto is = field.write(here);
    if (was != is)
      text += fmt::format("{}{} is '{}' there and '{}' here", text.empty() ? "" : ", ",
                          field.name == defined ? "stock" : field.name, was, is);
  }
  return text;
}

}  // namespace sluice::sale
