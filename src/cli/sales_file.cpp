#include "cli/sales_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <variant>

#include "base/duration.hpp"
#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/text.hpp"

namespace sluice::cli {
namespace {

using Scalar = std::variant<std::string, std::int64_t>;

/// JSON without what no sale needs: an array of objects whose members are texts and integers.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }

  /// Skips blanks; true, and behind `c`, when that is next.
  bool next_is(char c) {
    while (at_ < text_.size() && std::string_view{" \t\r\n"}.find(text_[at_]) != text_.npos) ++at_;
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (next_is(c)) return;
    if (at_ == text_.size()) fail(fmt::format("the file ends where '{}' should stand", c));
    fail(fmt::format("'{}' should stand here", c));
  }
  void need_end() {
    if (next_is('\0') || at_ < text_.size()) fail("something stands behind the last ']'");
  }

  std::string text() {
    need('"');
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("a text has no end in its line");
      if (text_[at_] != '\\') {
        value += text_[at_];
        continue;
      }
      constexpr std::string_view escapes = "\"\\/bfnrt";
      constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
      const auto which = ++at_ < text_.size() ? escapes.find(text_[at_]) : text_.npos;
      if (which == text_.npos) fail("write this character itself: \\u and others are not known");
      value += meanings[which];
    }
    need('"');
    return value;
  }

  Scalar scalar() {
    if (next_is('"')) {
      --at_;
      return text();
    }
    const auto end = text_.find_first_of(",]} \t\r\n", at_);
    const auto word = text_.substr(at_, end == text_.npos ? end : end - at_);
    const auto number = parse_integer<std::int64_t>(word);
    if (!number)
      fail(fmt::format("'{}' is neither a text in quotes nor an integer", word.substr(0, 40)));
    at_ += word.size();
    return *number;
  }

  std::size_t place() {
    if (next_is('\0')) --at_;
    return at_;
  }
  [[noreturn]] void fail_at(std::size_t place, const std::string& what) const {
    const auto before = text_.substr(0, place);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto column = place - (before.rfind('\n') + 1) + 1;
    throw Error{Errc::bad_argument, fmt::format("{}:{}:{}: {}", file_, line, column, what)};
  }

 private:
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

/// What is wrong with a value is thrown as a text.
struct Wrong {
  std::string what;
};

std::string text_of(const Scalar& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  throw Wrong{"a text in quotes is needed"};
}

std::int64_t integer_of(const Scalar& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return *number;
  throw Wrong{"an integer without quotes is needed"};
}

WallTime instant_of(const Scalar& value) {
  const auto instant = parse_instant(text_of(value));
  if (!instant)
    throw Wrong{fmt::format("'{}' is no instant: write {}", text_of(value), instant_form)};
  return *instant;
}

std::chrono::microseconds duration_of(const Scalar& value) {
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
  void (*set)(PlannedSale&, const Scalar&);
};

constexpr Key keys[] = {
    {"name", [](PlannedSale& sale, const Scalar& value) { sale.definition.name = text_of(value); }},
    {"stock",
     [](PlannedSale& sale, const Scalar& value) { sale.definition.stock = integer_of(value); }},
    {"type",
     [](PlannedSale& sale, const Scalar& value) { sale.definition.number_type = text_of(value); }},
    {"buckets",
     [](PlannedSale& sale, const Scalar& value) {
       sale.buckets = integer_of(value);
       if (sale.buckets < 1 || sale.buckets > most_buckets)
         throw Wrong{fmt::format("{} buckets, it must be 1 to {}", sale.buckets, most_buckets)};
     }},
    {"opens",
     [](PlannedSale& sale, const Scalar& value) { sale.definition.opens_at = instant_of(value); }},
    {"closes",
     [](PlannedSale& sale, const Scalar& value) { sale.definition.closes_at = instant_of(value); }},
    {"limit",
     [](PlannedSale& sale, const Scalar& value) { sale.definition.limit = integer_of(value); }},
    {"unit-limit", [](PlannedSale& sale,
                      const Scalar& value) { sale.definition.unit_limit = integer_of(value); }},
    {"largest-order",
     [](PlannedSale& sale, const Scalar& value) {
       sale.definition.largest_order = integer_of(value);
     }},
    {"price",
     [](PlannedSale& sale, const Scalar& value) { terms(sale).price = integer_of(value); }},
    {"currency",
     [](PlannedSale& sale, const Scalar& value) { terms(sale).currency = text_of(value); }},
    {"pay-within",
     [](PlannedSale& sale, const Scalar& value) { terms(sale).window = duration_of(value); }},
    {"grace",
     [](PlannedSale& sale, const Scalar& value) { terms(sale).grace = duration_of(value); }},
    {"zone", [](PlannedSale& sale, const Scalar& value) { sale.definition.zone = text_of(value); }},
    {"digits",
     [](PlannedSale& sale, const Scalar& value) {
       sale.definition.digits =
           static_cast<int>(std::clamp<std::int64_t>(integer_of(value), 0, 99));
     }},
};

const Key& key_named(const Reader& reader, std::size_t place, const std::string& name) {
  const Key* nearest = keys;
  for (const auto& key : keys) {
    if (key.name == name) return key;
    if (edit_distance(key.name, name) < edit_distance(nearest->name, name)) nearest = &key;
  }
  reader.fail_at(place, fmt::format("a sale has no '{}'; did you mean '{}'?", name, nearest->name));
}

PlannedSale read_sale(Reader& reader) {
  PlannedSale sale;
  std::set<std::string> given;
  reader.need('{');
  const auto begin = reader.place();
  if (!reader.next_is('}')) {
    do {
      const auto place = reader.place();
      const auto name = reader.text();
      const auto& key = key_named(reader, place, name);
      if (!given.insert(name).second) reader.fail_at(place, fmt::format("'{}' stands twice", name));
      reader.need(':');
      const auto value_place = reader.place();
      try {
        key.set(sale, reader.scalar());
      } catch (const Wrong& wrong) {
        reader.fail_at(value_place, fmt::format("{}: {}", name, wrong.what));
      }
    } while (reader.next_is(','));
    reader.need('}');
  }
  for (const auto* const needed : {"name", "stock", "type"})
    if (!given.contains(needed))
      reader.fail_at(begin, fmt::format("this sale has no '{}'", needed));
  return sale;
}

}  // namespace

std::vector<PlannedSale> parse_sales(std::string_view text, const std::string& file) {
  Reader reader{text, file};
  std::vector<PlannedSale> sales;
  std::set<std::string> names;
  std::map<std::string, std::string> types;  // and the first sale of each
  reader.need('[');
  if (!reader.next_is(']')) {
    do {
      const auto place = reader.place();
      sales.push_back(read_sale(reader));
      const auto& sale = sales.back().definition;
      if (!names.insert(sale.name).second)
        reader.fail_at(place, fmt::format("sale '{}' stands twice", sale.name));
      const auto [same, is_new] = types.try_emplace(sale.number_type, sale.name);
      if (!is_new)
        reader.fail_at(place, fmt::format("type '{}' is that of sale '{}', too: both would give "
                                          "the same numbers",
                                          same->first, same->second));
    } while (reader.next_is(','));
    reader.need(']');
  }
  reader.need_end();
  return sales;
}

std::vector<PlannedSale> read_sales(const std::string& file) {
  constexpr std::size_t most = 1 << 20;
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& input = file == "-" ? std::cin : opened;
  if (!input) throw Error{Errc::bad_argument, fmt::format("{}: {}", file, std::strerror(errno))};
  std::string text(most + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  if (input.bad())
    throw Error{Errc::bad_argument, fmt::format("{}: {}", file, std::strerror(errno))};
  if (text.size() > most)
    throw Error{Errc::bad_argument, fmt::format("{}: longer than 1 MiB", file)};
  return parse_sales(text, file);
}

}  // namespace sluice::cli
