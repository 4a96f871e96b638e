/// The elements of a reply in RESP: where they end, for the reader and for merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::proxy {

/// One element of a reply: a string or a number, or the header of an aggregate.
struct Element {
  enum class State : std::uint8_t { whole, cut, bad };
  State state = State::bad;
  char type = 0;
  bool null = false;
  /// Length of a string, count of an aggregate (a map's: pairs), value of an integer.
  std::int64_t number = 0;
  /// Bytes of the element: of a string with its content, of an aggregate its header.
  std::size_t size = 0;
  std::size_t missing = 1;   ///< of a cut one: at least so many bytes
  std::size_t children = 0;  ///< elements that follow and belong to it

  bool is_error() const noexcept { return type == '-' || type == '!'; }
};

/// The element at the front of `bytes`. A line longer than `line_limit`, streamed strings and
/// aggregates, and what no server sends are bad. `scanned`: of a cut line, how far it has been
/// read; kept by the caller.
Element element_at(std::string_view bytes, std::size_t& scanned) noexcept;

inline constexpr std::size_t reply_line_limit = std::size_t{64} << 10;

/// REQUIRES: `bytes` begins with a whole reply that a reader has found. The size of its first
/// value, with the attributes before it.
std::size_t reply_size(std::string_view bytes) noexcept;
/// The same without the attributes at its front.
std::string_view without_attributes(std::string_view reply) noexcept;

}  // namespace sluice::proxy
