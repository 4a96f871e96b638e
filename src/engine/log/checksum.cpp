#include "engine/log/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/random.hpp"

namespace sluice::engine {
namespace {

constexpr std::string_view key_mark = "#SUM-KEY:";
constexpr std::string_view sum_mark = "#SUM:";
constexpr std::string_view line_end = "\r\n";
constexpr std::size_t digits = 16;  // of a number
constexpr std::size_t sum_size = sum_mark.size() + digits + line_end.size();

/// What stands behind the mark of a sum, as a number.
std::uint64_t with_key(const SipKey& key, std::uint64_t sum) noexcept {
  return (key[0] >> 32 << 32) | (sum & 0xffff'ffffU);
}
bool is_of(std::uint64_t number, const SipKey& key) noexcept {
  return number >> 32 == key[0] >> 32;
}

/// Sixteen lower-case hex digits and nothing else.
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  const bool lower = text.find_first_of("ABCDEF") == std::string_view::npos;
  if (text.size() != digits || error != std::errc{} || end != text.data() + digits || !lower)
    return std::nullopt;
  return number;
}

/// What stands between a mark and the end of its line.
std::optional<std::string_view> between(std::string_view line, std::string_view mark) noexcept {
  if (!line.starts_with(mark) || !line.ends_with(line_end)) return std::nullopt;
  return line.substr(mark.size(), line.size() - mark.size() - line_end.size());
}

bool may_become(std::string_view bytes, std::string_view mark, std::size_t size) noexcept {
  if (mark.starts_with(bytes)) return true;
  if (!bytes.starts_with(mark)) return false;
  bytes.remove_prefix(mark.size());
  const auto end = std::min(bytes.find_first_not_of("0123456789abcdef"), bytes.size());
  return end == bytes.size() ? end <= size : end == size && line_end.starts_with(bytes.substr(end));
}

}  // namespace

static_assert(key_line_size == key_mark.size() + 2 * digits + line_end.size());
bool is_key_line(std::string_view bytes) noexcept {
  const auto text = between(bytes, key_mark);
  return text && text->size() == 2 * digits;
}

void ChecksumWriter::seal(std::string& bytes) {
  if (bytes.empty()) return;
  std::string key_line;
  if (!sum_) {
    key_ = random_128();
    sum_.emplace(key_);
    key_line = fmt::format("{}{:016x}{:016x}{}", key_mark, key_[0], key_[1], line_end);
  }
  sum_->add(bytes);
  bytes.insert(0, key_line);
  bytes += fmt::format("{}{:016x}{}", sum_mark, with_key(key_, sum_->value()), line_end);
}

ChecksumReader::Line ChecksumReader::take(std::string_view comment) noexcept {
  if (const auto text = between(comment, key_mark); text && text->size() == 2 * digits) {
    const auto first = parse_number(text->substr(0, digits));
    const auto second = parse_number(text->substr(digits));
    if (!first || !second) return Line::other;
    key_ = {*first, *second};
    sum_.emplace(key_);
    return Line::key;
  }
  const auto text = between(comment, sum_mark);
  const auto number = text ? parse_number(*text) : std::nullopt;
  if (!number) return Line::other;
  return sum_ && *number == with_key(key_, sum_->value()) ? Line::right : Line::wrong;
}

bool ChecksumReader::may_become_line(std::string_view bytes) noexcept {
  return may_become(bytes, key_mark, 2 * digits) || may_become(bytes, sum_mark, digits);
}

bool ChecksumReader::ends_in(std::string_view bytes) const noexcept {
  if (!sum_) return false;
  for (auto at = bytes.find(sum_mark); at != bytes.npos; at = bytes.find(sum_mark, at + 1)) {
    const auto text = between(bytes.substr(at, sum_size), sum_mark);
    const auto number = text ? parse_number(*text) : std::nullopt;
    if (number && is_of(*number, key_)) return true;
  }
  return false;
}

}  // namespace sluice::engine
