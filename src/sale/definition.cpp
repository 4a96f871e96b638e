#include "sale/definition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t longest_name = 128;
constexpr std::size_t longest_type = 16;
constexpr std::int64_t largest_stock = 1'000'000'000'000;
constexpr int most_digits = 12;

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

/// One row a field: its name in the hash, how it is written and read.
struct Field {
  std::string_view name;
  std::string (*write)(const Definition&);
  void (*read)(Definition&, const std::string&);
};

constexpr Field fields[] = {
    {"stock", [](const Definition& d) { return fmt::to_string(d.stock); },
     [](Definition& d, const std::string& text) { d.stock = integer_of(text); }},
    {"opens", [](const Definition& d) { return text_of(d.opens_at); },
     [](Definition& d, const std::string& text) { d.opens_at = instant_of(text); }},
    {"closes", [](const Definition& d) { return text_of(d.closes_at); },
     [](Definition& d, const std::string& text) { d.closes_at = instant_of(text); }},
    {"limit", [](const Definition& d) { return fmt::to_string(d.limit); },
     [](Definition& d, const std::string& text) { d.limit = integer_of(text); }},
    {"largest", [](const Definition& d) { return fmt::to_string(d.largest_order); },
     [](Definition& d, const std::string& text) { d.largest_order = integer_of(text); }},
    {"type", [](const Definition& d) { return d.number_type; },
     [](Definition& d, const std::string& text) { d.number_type = text; }},
    {"zone", [](const Definition& d) { return d.zone; },
     [](Definition& d, const std::string& text) { d.zone = text; }},
    {"digits", [](const Definition& d) { return fmt::to_string(d.digits); },
     [](Definition& d, const std::string& text) { d.digits = static_cast<int>(integer_of(text)); }},
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

}  // namespace

void check_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name)
    throw Error{Errc::bad_argument,
                fmt::format("the name of a sale has {} bytes, it must have 1 to {}", name.size(),
                            longest_name)};
  if (name.find_first_of("{}") != std::string_view::npos)
    throw Error{
        Errc::bad_argument,
        fmt::format("sale '{}': a name has no braces, they mark the slot in Redis Cluster", name)};
}

void check(const SaleDefinition& sale) {
  check_name(sale.name);
  check_range(sale, "stock", sale.stock, 0, largest_stock);
  check_range(sale, "limit", sale.limit, 0, largest_stock);
  check_range(sale, "largest_order", sale.largest_order, 0, largest_stock);
  check_range(sale, "digits", sale.digits, 1, most_digits);
  const auto& type = sale.number_type;
  if (type.empty() || type.size() > longest_type ||
      !std::all_of(type.begin(), type.end(), is_type_character))
    throw Error{
        Errc::bad_argument,
        fmt::format(
            "sale '{}': number_type is '{}', it must be 1 to {} letters, digits, '-' or '_'",
            sale.name, type, longest_type)};
  if (sale.opens_at && sale.closes_at && *sale.opens_at >= *sale.closes_at)
    throw Error{Errc::bad_argument, fmt::format("sale '{}' closes before it opens", sale.name)};
}

const std::vector<std::string>& definition_fields() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& field : fields) all.emplace_back(field.name);
    return all;
  }();
  return names;
}

std::vector<std::string> values_of(const SaleDefinition& definition) {
  std::vector<std::string> values;
  for (const auto& field : fields) values.push_back(field.write(definition));
  return values;
}

SaleDefinition definition_of(std::string name, const Value::Items& values) {
  SaleDefinition definition{.name = std::move(name)};
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    try {
      fields[i].read(definition, values.at(i).as_text());
    } catch (const Error& error) {
      throw Error{Errc::corrupt, fmt::format("sale '{}': its field {} in the store is damaged: {}",
                                             definition.name, fields[i].name, error.message())};
    }
  }
  return definition;
}

std::string difference(const SaleDefinition& there, const SaleDefinition& here) {
  std::string text;
  for (const auto& field : fields) {
    const auto was = field.write(there);
    const auto is = field.write(here);
    if (was != is)
      text += fmt::format("{}{} is '{}' there and '{}' here", text.empty() ? "" : ", ", field.name,
                          was, is);
  }
  return text;
}

}  // namespace sluice::sale
