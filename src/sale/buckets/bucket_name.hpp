/// What the buckets of a sale are called, and which of them a buyer is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/sale.hpp"

namespace sluice::sale {

/// "maotai:3": a slot of its own.
std::string bucket_name(std::string_view sale, std::int64_t index);
/// The other way round. REQUIRES: it is the name of a bucket.
std::string whole_name(std::string_view bucket);

/// "MT" and 3 make "MTD": in the numbers of a bucket stands its letter.
std::string bucket_type(std::string_view type, std::int64_t index);
/// Which bucket gave a number; empty: none of them.
std::optional<std::int64_t> bucket_of_number(std::string_view number, const SaleDefinition& whole,
                                             std::int64_t count);

/// The same for ever: programs of all versions look for a buyer where he is.
std::int64_t bucket_of(const BuyerId& buyer, std::int64_t count) noexcept;

/// A bucket of the whole sale; the first ones have a unit more where it cannot be divided.
SaleDefinition bucket_definition(const SaleDefinition& whole, std::int64_t index,
                                 std::int64_t count);
/// The whole sale of a bucket.
SaleDefinition whole_definition(const SaleDefinition& bucket);

}  // namespace sluice::sale
