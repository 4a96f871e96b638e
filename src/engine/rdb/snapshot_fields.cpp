#include "engine/rdb/snapshot_fields.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/integer.hpp"
#include "engine/rdb/packed.hpp"

namespace sluice::engine {
namespace {

constexpr std::uint64_t longest_text = 512ULL << 20;

}  // namespace

std::string_view SnapshotFields::take(std::uint64_t size) {
  const auto bytes = source_.take(size);
  checksum_ = crc64(checksum_, bytes);
  return bytes;
}

SnapshotFields::Length SnapshotFields::any_length() {
  const auto first = byte();
  switch (first >> 6) {
    case 0: return {first};
    case 1: return {(first & 0x3F) << 8 | byte()};
    case 3: return {first & 0x3F, true};
    default:
      if (first == 0x80) return {big_endian<4>(take(4))};
      if (first == 0x81) return {big_endian<8>(take(8))};
      refuse_damaged(fmt::format("a length that begins with {}", first));
  }
}

std::uint64_t SnapshotFields::length() {
  const auto length = any_length();
  if (length.is_special) refuse_damaged("a text where a length stands");
  return length.value;
}

std::string SnapshotFields::text() {
  enum : std::uint64_t { number_1 = 0, number_2 = 1, number_4 = 2, compressed = 3 };
  const auto length = any_length();
  const auto checked = [](std::uint64_t size) {
    if (size > longest_text) refuse_damaged(fmt::format("a text of {} bytes", size));
    return size;
  };
  if (!length.is_special) return std::string{take(checked(length.value))};
  switch (length.value) {
    case number_1: return fmt::format("{}", signed_little_endian<1>(take(1)));
    case number_2: return fmt::format("{}", signed_little_endian<2>(take(2)));
    case number_4: return fmt::format("{}", signed_little_endian<4>(take(4)));
    case compressed: {
      const auto packed = checked(this->length());
      const auto size = checked(this->length());
      return from_lzf(take(packed), size);
    }
    default: refuse_damaged(fmt::format("a text packed in the unknown way {}", length.value));
  }
}

double SnapshotFields::number_as_text() {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  enum : unsigned { not_a_number = 253, positive = 254, negative = 255 };
  const auto size = byte();
  if (size == positive) return infinity;
  if (size == negative) return -infinity;
  const auto number = size == not_a_number ? std::nullopt : parse_decimal(take(size));
  if (!number) refuse_damaged("a score that is no number");
  return *number;
}

}  // namespace sluice::engine
