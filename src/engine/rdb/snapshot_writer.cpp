#include "engine/rdb/snapshot_writer.hpp"

#include <algorithm>

#include "engine/rdb/packed.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t size_of_seal = 2 + 8;
constexpr std::uint64_t version_written = 10;  // of Redis 7.0
constexpr std::uint64_t newest_version_read = 12;

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size) {
  append_little_endian(out, value, size);
  std::reverse(out.end() - static_cast<std::ptrdiff_t>(size), out.end());
}

}  // namespace

void append_little_endian(std::string& out, std::uint64_t value, std::size_t size) {
  for (; size > 0; --size, value >>= 8) out += static_cast<char>(value);
}

void append_raw_id(std::string& out, std::uint64_t ms, std::uint64_t number) {
  append_big_endian(out, ms, 8);
  append_big_endian(out, number, 8);
}

void append_length(std::string& out, std::uint64_t length) {
  if (length < 64) return append_big_endian(out, length, 1);
  if (length < 16384) return append_big_endian(out, 0x4000 | length, 2);
  const bool is_short = length <= 0xFFFFFFFF;
  out += is_short ? '\x80' : '\x81';
  append_big_endian(out, length, is_short ? 4 : 8);
}

void append_text(std::string& out, std::string_view text) {
  append_length(out, text.size());
  out += text;
}

void ListpackWriter::add(std::int64_t number) {
  if (number >= 0 && number < 128) {
    elements_ += static_cast<char>(number);
    return end(1);
  }
  elements_ += '\xF4';
  append_little_endian(elements_, static_cast<std::uint64_t>(number), 8);
  end(9);
}

void ListpackWriter::add(std::string_view text) {
  const auto before = elements_.size();
  if (text.size() < 64) {
    elements_ += static_cast<char>(0x80 | text.size());
  } else {
    elements_ += '\xF0';
    append_little_endian(elements_, text.size(), 4);
  }
  elements_ += text;
  end(elements_.size() - before);
}

/// The length of an element stands behind it, to be read from its last byte on.
void ListpackWriter::end(std::size_t size) {
  ++count_;
  const auto bytes = size_of_length_behind(size);
  for (auto i = bytes; i-- > 0;)
    elements_ += static_cast<char>((size >> (7 * i) & 0x7F) | (i + 1 == bytes ? 0 : 0x80));
}

std::string ListpackWriter::finish() const {
  constexpr std::size_t head = 6;
  constexpr std::size_t most_counted = 65535;
  std::string bytes;
  append_little_endian(bytes, head + elements_.size() + 1, 4);
  append_little_endian(bytes, std::min(count_, most_counted), 2);
  return bytes + elements_ + '\xFF';
}

void seal_value(std::string& value) {
  append_little_endian(value, version_written, 2);
  append_little_endian(value, crc64(0, value), 8);
}

std::string_view sealed_value(std::string_view sealed) noexcept {
  if (sealed.size() < size_of_seal) return {};
  const auto value = sealed.substr(0, sealed.size() - size_of_seal);
  const auto seal = sealed.substr(value.size());
  const auto checked = sealed.substr(0, sealed.size() - 8);
  const bool is_right = little_endian<2>(seal) <= newest_version_read &&
                        little_endian<8>(seal.substr(2)) == crc64(0, checked);
  return is_right ? value : std::string_view{};
}

}  // namespace sluice::engine
