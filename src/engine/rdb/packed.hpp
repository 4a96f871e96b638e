/// The packed forms in which Redis keeps small collections, in memory and in its snapshots:
/// listpack, ziplist, intset, and LZF around any of them. Pure.
///
/// Each throws Error{corrupt} for bytes that are no such form; nothing outside of `bytes` is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sluice::engine {

/// Throws it: `what` stands where something else should.
[[noreturn]] void refuse_damaged(std::string what);

/// Gets the elements in their order; a number as its decimal text. The text is good for the call.
using VisitElement = std::function<void(std::string_view)>;

void visit_listpack(std::string_view bytes, const VisitElement& visit);
void visit_ziplist(std::string_view bytes, const VisitElement& visit);
void visit_intset(std::string_view bytes, const VisitElement& visit);

/// How many bytes say how long an element of a listpack is, behind it.
std::size_t size_of_length_behind(std::size_t element) noexcept;

/// `size`: what comes out of it.
std::string from_lzf(std::string_view bytes, std::size_t size);

/// The checksum at the end of a snapshot: CRC-64 of Jones, reflected, as Redis counts it.
std::uint64_t crc64(std::uint64_t before, std::string_view bytes) noexcept;

/// The first `Size` bytes as a number, least byte first. REQUIRES: they are there.
template <std::size_t Size>
std::uint64_t little_endian(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = Size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}
/// The same, greatest byte first.
template <std::size_t Size>
std::uint64_t big_endian(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < Size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}
/// The same as little_endian(), with a sign.
template <std::size_t Size>
std::int64_t signed_little_endian(std::string_view bytes) noexcept {
  constexpr int unused = 64 - 8 * static_cast<int>(Size);
  return static_cast<std::int64_t>(little_endian<Size>(bytes) << unused) >> unused;
}

}  // namespace sluice::engine
