/// The hash of texts that strangers choose, for tables of the standard library: its key is drawn by
/// each process, so nobody can send texts of which he knows that they collide. std::hash has a key
/// that everybody knows.
///
///     std::unordered_map<std::string, Account, KeyedHash, std::equal_to<>> accounts;
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// Threads: any.
struct KeyedHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept;
};

}  // namespace sluice
