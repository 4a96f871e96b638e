/// The file of a shared filter. Numbers are little-endian, 8 bytes each:
///
///     "SLUICESB"  1 (the format)  codec  bits and hashes of the first link  bytes of the chain's
///     text bytes of the file  checksum (XXH64 of all other bytes) the text of the chain for each
///     link: its bytes, as Redis has them expected keys  error rate (double)
///
/// Each of these lines begins at a multiple of 64 bytes; what is between them is zero.
#pragma once

#include <memory>
#include <string>

#include "bloom/shared/shared_filter.hpp"

namespace sluice::bloom {

/// Both throw Error as SharedBloomFilter says.
Task<void> save(std::shared_ptr<SharedFilter> filter, std::string path);
Task<void> load(std::shared_ptr<SharedFilter> filter, std::string path);

}  // namespace sluice::bloom
