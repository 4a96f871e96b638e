/// The id of a stream's entry: milliseconds and a number within them, "1700000000000-3".
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace sluice::engine {

struct StreamId {
  std::uint64_t ms = 0;
  std::uint64_t seq = 0;

  static constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  static constexpr StreamId max() noexcept { return {most, most}; }

  friend auto operator<=>(const StreamId&, const StreamId&) = default;

  /// The id after or before this one; empty: there is none.
  std::optional<StreamId> next() const noexcept {
    if (*this == max()) return std::nullopt;
    return seq == most ? StreamId{ms + 1, 0} : StreamId{ms, seq + 1};
  }
  std::optional<StreamId> previous() const noexcept {
    if (*this == StreamId{}) return std::nullopt;
    return seq == 0 ? StreamId{ms - 1, most} : StreamId{ms, seq - 1};
  }
};

/// "ms-seq", or "ms" alone with `missing_seq` for the rest.
std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq) noexcept;

/// The text of an id, without an allocation.
class StreamIdText {
 public:
  explicit StreamIdText(StreamId id) noexcept;
  std::string_view view() const noexcept { return {text_.data(), size_}; }
  operator std::string_view() const noexcept { return view(); }

 private:
  std::array<char, 41> text_;
  std::size_t size_;
};

}  // namespace sluice::engine
