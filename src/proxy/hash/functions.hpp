/// The hash functions themselves, one in each file; hash.cpp lists them. `Byte` is how a function
/// that adds a `char` sees it: signed char (x86-64) or unsigned char (ARM).
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t one_at_a_time(std::string_view key) noexcept;
template <class Byte>
std::uint32_t fnv1_64(std::string_view key) noexcept;
template <class Byte>
std::uint32_t fnv1a_64(std::string_view key) noexcept;
template <class Byte>
std::uint32_t fnv1_32(std::string_view key) noexcept;
template <class Byte>
std::uint32_t fnv1a_32(std::string_view key) noexcept;
template <class Byte>
std::uint32_t hsieh(std::string_view key) noexcept;

std::uint32_t md5(std::string_view key) noexcept;
std::uint32_t crc16(std::string_view key) noexcept;
std::uint32_t crc32(std::string_view key) noexcept;
std::uint32_t crc32a(std::string_view key) noexcept;
std::uint32_t murmur(std::string_view key) noexcept;
std::uint32_t jenkins(std::string_view key) noexcept;

}  // namespace sluice::proxy::hashes
