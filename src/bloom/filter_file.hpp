/// The file of a filter. Numbers are little-endian, 8 bytes each:
///
///     "SLUICEBF"  1 (the format)  kind  parts  bytes of the file  expected  error rate (double)
///     max_bytes  checksum (XXH64 of all other bytes)
///     for each part: bits  hashes  capacity  keys
///     for each part: its words
///
/// The head, the table and each part begin at a multiple of 64 bytes, so that a mapped file is used
/// as it lies; what is between them is zero.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bloom/filter.hpp"

namespace sluice::bloom {

/// All throw Error as BloomFilter says.
void save_file(const Filter& filter, const std::string& path);
std::unique_ptr<Filter> load_file(const std::string& path, std::uint64_t max_bytes);
std::unique_ptr<Filter> map_file(const std::string& path);

}  // namespace sluice::bloom
