#include "sluice/bloom_filter.hpp"

#include <cstring>
#include <utility>

#include "bloom/blocked_filter.hpp"
#include "bloom/filter.hpp"
#include "bloom/filter_file.hpp"
#include "bloom/guava_filter.hpp"

namespace sluice {
namespace {

/// The bytes of a number, as they are hashed.
std::string_view bytes_of(const std::uint64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

BloomFilter::BloomFilter(BloomFilterOptions options) : filter_(bloom::make_filter(options)) {}
BloomFilter::BloomFilter(std::unique_ptr<bloom::Filter> filter) : filter_(std::move(filter)) {}
BloomFilter::BloomFilter(BloomFilter filter, BloomAdders adders)
    : filter_(std::move(filter.filter_)) {
  filter_->set_adders(adders);
}
BloomFilter::BloomFilter(const BloomFilter& other) : filter_(bloom::copy_of(*other.filter_)) {}
BloomFilter& BloomFilter::operator=(const BloomFilter& other) { return *this = BloomFilter{other}; }
BloomFilter::BloomFilter(BloomFilter&&) noexcept = default;
BloomFilter& BloomFilter::operator=(BloomFilter&&) noexcept = default;
BloomFilter::~BloomFilter() = default;

bool BloomFilter::add(std::string_view key) { return filter_->add(key); }
bool BloomFilter::contains(std::string_view key) const { return filter_->contains(key); }
bool BloomFilter::add_number(std::uint64_t key) { return filter_->add_number(key); }
bool BloomFilter::contains_number(std::uint64_t key) const { return filter_->contains_number(key); }

std::vector<bool> BloomFilter::add(std::span<const std::string_view> keys) {
  return filter_->add_keys(keys);
}
std::vector<bool> BloomFilter::add(std::span<const std::uint64_t> keys) {
  return filter_->add_numbers(keys);
}
std::vector<bool> BloomFilter::contains(std::span<const std::string_view> keys) const {
  return filter_->contains_keys(keys);
}
std::vector<bool> BloomFilter::contains(std::span<const std::uint64_t> keys) const {
  return filter_->contains_numbers(keys);
}

bool BloomFilter::remove(std::string_view key) { return filter_->remove(key); }
bool BloomFilter::remove_number(std::uint64_t key) { return filter_->remove(bytes_of(key)); }
void BloomFilter::merge(const BloomFilter& other) { filter_->merge(*other.filter_); }
BloomFilterInfo BloomFilter::info() const { return filter_->info(); }
const BloomFilterOptions& BloomFilter::options() const noexcept { return filter_->options(); }

void BloomFilter::save(const std::string& path) const { bloom::save_file(*filter_, path); }
BloomFilter BloomFilter::load(const std::string& path, std::uint64_t max_bytes) {
  return BloomFilter{bloom::load_file(path, max_bytes)};
}
BloomFilter BloomFilter::map(const std::string& path) { return BloomFilter{bloom::map_file(path)}; }

std::string BloomFilter::to_guava() const { return bloom::guava_form(*filter_); }
BloomFilter BloomFilter::from_guava(std::string_view bytes) {
  return BloomFilter{bloom::read_guava_form(bytes)};
}
std::string BloomFilter::to_parquet() const { return bloom::parquet_form(*filter_); }
BloomFilter BloomFilter::from_parquet(std::string_view bitset) {
  return BloomFilter{bloom::read_parquet_form(bitset)};
}

std::string BloomFilter::int_funnel(std::int32_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string BloomFilter::chars_funnel(std::u16string_view text) {
  std::string bytes(text.size() * sizeof(char16_t), '\0');
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), bytes.size());
  return bytes;
}

}  // namespace sluice
