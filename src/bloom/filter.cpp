#include "bloom/filter.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "bloom/blocked_filter.hpp"
#include "bloom/counting_filter.hpp"
#include "bloom/guava_filter.hpp"
#include "bloom/scalable_filter.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

struct Kind {
  BloomKind kind;
  std::string_view name;
  Shape (*shape)(const BloomFilterOptions& options);
  std::unique_ptr<Filter> (*make)(const BloomFilterOptions& options, std::vector<Part> parts);
};

constexpr std::array kinds{
    Kind{BloomKind::blocked, "blocked", blocked_shape, make_blocked},
    Kind{BloomKind::guava, "guava", guava_shape, make_guava},
    Kind{BloomKind::guava_32, "guava_32", guava_shape, make_guava},
    Kind{BloomKind::counting, "counting", counting_shape, make_counting},
    Kind{BloomKind::scalable, "scalable", scalable_shape, make_scalable},
};

const Kind& row_of(BloomKind kind) {
  for (const auto& row : kinds)
    if (row.kind == kind) return row;
  throw Error{Errc::bad_argument,
              fmt::format("there is no kind {} of Bloom filters", static_cast<int>(kind))};
}

/// The bytes of a number, as they are hashed.
std::string_view bytes_of(const std::uint64_t& number) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

template <class Answer>
std::vector<bool> each(const auto& keys, const Answer& answer) {
  std::vector<bool> answers(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) answers[i] = answer(keys[i]);
  return answers;
}

}  // namespace

bool Filter::add_number(std::uint64_t key) { return add(bytes_of(key)); }
bool Filter::contains_number(std::uint64_t key) const { return contains(bytes_of(key)); }

std::vector<bool> Filter::add_keys(Keys keys) {
  return each(keys, [this](std::string_view key) { return add(key); });
}
std::vector<bool> Filter::contains_keys(Keys keys) const {
  return each(keys, [this](std::string_view key) { return contains(key); });
}
std::vector<bool> Filter::add_numbers(Numbers keys) {
  return each(keys, [this](std::uint64_t key) { return add_number(key); });
}
std::vector<bool> Filter::contains_numbers(Numbers keys) const {
  return each(keys, [this](std::uint64_t key) { return contains_number(key); });
}

bool Filter::remove(std::string_view) {
  throw Error{Errc::bad_argument,
              fmt::format("nothing can be removed from a Bloom filter of the kind '{}': its bits "
                          "belong to other keys, too; take BloomKind::counting",
                          to_string(options_.kind))};
}

std::unique_ptr<Filter> make_filter(const BloomFilterOptions& asked) {
  auto options = asked;
  options.expected = std::max<std::uint64_t>(options.expected, 1);
  if (!(options.error_rate > 0 && options.error_rate < 1))  // also what is no number
    throw Error{Errc::bad_argument, fmt::format("the error rate of a Bloom filter is {}: it lies "
                                                "between 0 and 1, such as 0.01",
                                                options.error_rate)};
  const auto& row = row_of(options.kind);
  const auto shape = row.shape(options);
  if (shape.bits / 8 > options.max_bytes)
    throw Error{Errc::bad_argument,
                fmt::format("a Bloom filter '{}' for {} keys at an error rate of {} takes {} MiB: "
                            "more than max_bytes ({}); expect fewer keys, allow more errors, or "
                            "raise it",
                            row.name, options.expected, options.error_rate, shape.bits >> 23,
                            options.max_bytes)};
  std::vector<Part> parts;
  parts.push_back({shape, Memory{shape.bits / 8}});
  return row.make(options, std::move(parts));
}

std::unique_ptr<Filter> make_filter(const BloomFilterOptions& options, std::vector<Part> parts) {
  return row_of(options.kind).make(options, std::move(parts));
}

std::unique_ptr<Filter> copy_of(const Filter& filter) {
  std::vector<Part> parts;
  for (const auto& part : filter.parts())
    parts.push_back({part.shape, Memory::copy_of(part.words)});
  return make_filter(filter.options(), std::move(parts));
}

void require_same_shape(const Filter& one, const Filter& other) {
  const auto ours = one.parts().front().shape;
  const auto theirs = other.parts().front().shape;
  if (one.options().kind == other.options().kind && ours.bits == theirs.bits &&
      ours.hashes == theirs.hashes)
    return;
  throw Error{
      Errc::bad_argument,
      fmt::format("a Bloom filter '{}' of {} bits and {} hashes cannot take up one '{}' of {} bits "
                  "and {} hashes: make both with the same options",
                  to_string(one.options().kind), ours.bits, ours.hashes,
                  to_string(other.options().kind), theirs.bits, theirs.hashes)};
}

BloomFilterInfo describe(const Filter& filter, std::uint64_t bits, std::uint64_t bits_set) {
  const auto part = filter.parts().front();
  const double saturation = static_cast<double>(bits_set) / static_cast<double>(bits);
  return {.kind = filter.options().kind,
          .bits = bits,
          .bytes = part.words.size_bytes(),
          .hashes = static_cast<unsigned>(part.shape.hashes),
          .filters = 1,
          .keys = estimated_keys(bits, bits_set, part.shape.hashes),
          .saturation = saturation,
          .error_rate = std::pow(saturation, static_cast<double>(part.shape.hashes))};
}

std::uint64_t estimated_keys(std::uint64_t bits, std::uint64_t bits_set, std::uint64_t hashes) {
  const auto all = static_cast<double>(bits);
  const double clear = std::max(static_cast<double>(bits - bits_set), 0.5);  // all set: at least
  return static_cast<std::uint64_t>(
      std::llround(all / static_cast<double>(hashes) * std::log(all / clear)));
}

std::uint64_t count_bits(std::span<const Word> words) {
  std::uint64_t count = 0;
  for (const auto& word : words) count += static_cast<std::uint64_t>(std::popcount(load(word)));
  return count;
}

}  // namespace sluice::bloom

namespace sluice {

std::string_view to_string(BloomKind kind) noexcept {
  for (const auto& row : bloom::kinds)
    if (row.kind == kind) return row.name;
  return "unknown";
}

}  // namespace sluice
