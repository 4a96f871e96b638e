#include "sale/buckets/bucket_name.hpp"

#include <fmt/format.h>

#include "base/sip_hash.hpp"

namespace sluice::sale {

std::string bucket_name(std::string_view sale, std::int64_t index) {
  return fmt::format("{}:{}", sale, index);
}

std::string whole_name(std::string_view bucket) {
  return std::string{bucket.substr(0, bucket.rfind(':'))};
}

std::string bucket_type(std::string_view type, std::int64_t index) {
  return fmt::format("{}{}", type, static_cast<char>('A' + index));
}

std::optional<std::int64_t> bucket_of_number(std::string_view number, const SaleDefinition& whole,
                                             std::int64_t count) {
  const auto& type = whole.number_type;
  if (!number.starts_with(type) || number.size() <= type.size()) return std::nullopt;
  const std::int64_t index = number[type.size()] - 'A';
  return index >= 0 && index < count ? std::optional{index} : std::nullopt;
}

std::int64_t bucket_of(const BuyerId& buyer, std::int64_t count) noexcept {
  constexpr SipKey key{};  // where a buyer is need not be a secret: units move to where he is
  return static_cast<std::int64_t>(SipHash::of(key, buyer.value) %
                                   static_cast<std::uint64_t>(count));
}

SaleDefinition bucket_definition(const SaleDefinition& whole, std::int64_t index,
                                 std::int64_t count) {
  auto bucket = whole;
  bucket.name = bucket_name(whole.name, index);
  bucket.stock = whole.stock / count + (index < whole.stock % count ? 1 : 0);
  bucket.number_type = bucket_type(whole.number_type, index);
  bucket.bucket = BucketPlace{.index = index, .count = count, .stock = whole.stock};
  return bucket;
}

SaleDefinition whole_definition(const SaleDefinition& bucket) {
  auto whole = bucket;
  whole.name = whole_name(bucket.name);
  whole.stock = bucket.bucket->stock;
  whole.number_type.pop_back();
  whole.bucket.reset();
  return whole;
}

}  // namespace sluice::sale
