#include "sale/payment_terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/duration.hpp"
#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::sale {
namespace {

struct Places {
  std::string_view currency;
  int places;
};
/// Of ISO 4217, those that have not two.
constexpr std::array odd_currencies{
    Places{"BHD", 3}, Places{"BIF", 0}, Places{"CLP", 0}, Places{"DJF", 0}, Places{"GNF", 0},
    Places{"IQD", 3}, Places{"ISK", 0}, Places{"JOD", 3}, Places{"JPY", 0}, Places{"KMF", 0},
    Places{"KRW", 0}, Places{"KWD", 3}, Places{"LYD", 3}, Places{"OMR", 3}, Places{"PYG", 0},
    Places{"RWF", 0}, Places{"TND", 3}, Places{"UGX", 0}, Places{"UYI", 0}, Places{"VND", 0},
    Places{"VUV", 0}, Places{"XAF", 0}, Places{"XOF", 0}, Places{"XPF", 0}};

constexpr std::chrono::seconds longest_window = std::chrono::days{90};
constexpr std::chrono::seconds longest_grace = std::chrono::days{1};
constexpr std::int64_t highest_price = 1'000'000'000'000;

void check_time(std::string_view sale, std::string_view field, std::chrono::microseconds time,
                std::chrono::microseconds least, std::chrono::microseconds most) {
  if (time < least || time > most)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': {} is {}, it must be {} to {}", sale, field,
                            duration_text(time), duration_text(least), duration_text(most))};
}

}  // namespace

std::string text_of(const PaymentTerms& terms) {
  return fmt::format("{} {} {} {}", std::chrono::microseconds{terms.window}.count(),
                     std::chrono::microseconds{terms.grace}.count(), terms.price, terms.currency);
}

PaymentTerms terms_of(std::string_view text) {
  PaymentTerms terms;
  std::string_view rest = text;
  const auto number = [&] {
    const auto word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return parse_integer<std::int64_t>(word).value_or(-1);
  };
  terms.window = std::chrono::microseconds{number()};
  terms.grace = std::chrono::microseconds{number()};
  terms.price = number();
  terms.currency = rest;
  try {
    check(terms, "");
  } catch (const Error&) {
    terms.currency.clear();
  }
  if (text_of(terms) != text)
    throw Error{Errc::corrupt, fmt::format("'{}' says nothing of payment", text)};
  return terms;
}

void check(const PaymentTerms& terms, std::string_view sale) {
  check_time(sale, "payment.window", terms.window, std::chrono::milliseconds{1}, longest_window);
  check_time(sale, "payment.grace", terms.grace, std::chrono::microseconds{0}, longest_grace);
  if (terms.price < 1 || terms.price > highest_price)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': payment.price is {}, it must be 1 to {}", sale, terms.price,
                            highest_price)};
  if (!is_currency(terms.currency))
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': payment.currency is '{}', it must be three capital letters",
                            sale, terms.currency)};
}

bool is_currency(std::string_view text) noexcept {
  constexpr std::size_t letters = 3;
  return text.size() == letters &&
         std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_provider_name(std::string_view text) noexcept {
  constexpr std::size_t longest = 32;
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_';
  });
}

std::int64_t price_of(std::int64_t units, const PaymentTerms& terms) noexcept {
  std::int64_t price = 0;
  if (__builtin_mul_overflow(units, terms.price, &price))
    return std::numeric_limits<std::int64_t>::max();
  return price;
}

std::string part_of_payment(std::int64_t before, std::int64_t amount, std::int64_t paid) {
  if (before == 0 && amount == paid) return std::string{whole_payment};
  return fmt::format("{}-{}", before, before + amount);
}

std::optional<std::size_t> parts_worth(std::int64_t excess, std::span<const PartBack> parts,
                                       const PaymentTerms& terms) noexcept {
  std::int64_t units = 0;
  for (std::size_t last = 0;; ++last) {
    if (price_of(units, terms) == excess) return last;
    if (last == parts.size()) return std::nullopt;
    units += parts[parts.size() - 1 - last].units;
  }
}

int places_of(std::string_view currency) noexcept {
  const auto* const odd = std::ranges::find(odd_currencies, currency, &Places::currency);
  return odd == odd_currencies.end() ? 2 : odd->places;
}

std::string money_text(std::int64_t amount, std::string_view currency) {
  const int places = places_of(currency);
  const std::int64_t unit = places == 0 ? 1 : places == 2 ? 100 : 1000;
  auto text = fmt::to_string(amount / unit);
  if (places > 0) text += fmt::format(".{:0{}}", amount % unit, places);
  return fmt::format("{} {}", text, currency);
}

}  // namespace sluice::sale
