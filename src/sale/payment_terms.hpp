/// What a sale says of payment, as a field of its hash and of the database's definition.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/sale.hpp"

namespace sluice::sale {

/// The field; it is missing where a sale takes no payments.
inline constexpr std::string_view payment_field = "payment";

/// "1800000000 120000000 149900 CNY": window and grace in microseconds, price, currency.
std::string text_of(const PaymentTerms& terms);
/// Throws Error{corrupt} for a text that text_of() does not write.
PaymentTerms terms_of(std::string_view text);

/// Throws Error{bad_argument} that names the field, its value and what it may be.
void check(const PaymentTerms& terms, std::string_view sale);

/// Three capital letters, as ISO 4217 has them.
bool is_currency(std::string_view text) noexcept;
bool is_provider_name(std::string_view text) noexcept;

/// Which part of its payment a refund is: all of it, or "500-1000".
inline constexpr std::string_view whole_payment = "whole";
std::string part_of_payment(std::int64_t before, std::int64_t amount, std::int64_t paid);

/// What `units` cost; the largest number where it would be more.
std::int64_t price_of(std::int64_t units, const PaymentTerms& terms) noexcept;

/// Units that were taken back of an order that was not paid, with the version that did it.
struct PartBack {
  std::int64_t seq;
  std::int64_t units;
};
/// How many of the last parts have the price `excess`; empty: it is the price of none.
std::optional<std::size_t> parts_worth(std::int64_t excess, std::span<const PartBack> parts,
                                       const PaymentTerms& terms) noexcept;

/// How many decimal places a currency has: ISO 4217.
int places_of(std::string_view currency) noexcept;
/// "9.99 CNY" of 999 in the smallest unit, as people write it. REQUIRES: it is not below 0.
std::string money_text(std::int64_t amount, std::string_view currency);

}  // namespace sluice::sale
