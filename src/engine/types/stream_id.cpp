#include "engine/types/stream_id.hpp"

#include <charconv>

namespace sluice::engine {

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq) noexcept {
  const auto dash = text.find('-');
  const auto ms = parse_number(text.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing_seq};
  const auto seq = parse_number(text.substr(dash + 1));
  if (!seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

StreamIdText::StreamIdText(StreamId id) noexcept {
  char* const end = text_.data() + text_.size();
  char* at = std::to_chars(text_.data(), end, id.ms).ptr;
  *at++ = '-';
  at = std::to_chars(at, end, id.seq).ptr;
  size_ = static_cast<std::size_t>(at - text_.data());
}

}  // namespace sluice::engine
