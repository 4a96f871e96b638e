/// SCAN and its kin: cursor, MATCH, COUNT, TYPE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/core/command.hpp"
#include "engine/core/glob.hpp"

namespace sluice::engine {

struct ScanOptions {
  std::uint64_t cursor = 0;
  std::size_t count = 10;
  std::string_view pattern;  ///< empty: everything
  std::string_view type;     ///< SCAN alone; empty: every type

  bool matches(std::string_view text) const noexcept {
    return pattern.empty() || glob_matches(pattern, text);
  }
};

/// Reads the cursor at words[place] and what follows. False: refused.
bool read_scan(Words words, std::size_t place, bool with_type, ScanOptions& options, Reply& reply);
bool read_cursor(std::string_view word, std::uint64_t& cursor, Reply& reply);

/// Goes on until `count` elements were visited, but for sparse tables not for ever.
template <class Container, class Visit>
std::uint64_t scan_some(const Container& container, const ScanOptions& options, Visit&& visit) {
  auto cursor = options.cursor;
  std::size_t visited = 0;
  auto steps = options.count < SIZE_MAX / 10 ? options.count * 10 : SIZE_MAX;
  do {
    cursor = container.scan(cursor, [&](const auto& element) { ++visited, visit(element); });
  } while (cursor != 0 && visited < options.count && --steps > 0);
  return cursor;
}

void reply_scan(Reply& reply, std::uint64_t cursor, const std::vector<std::string>& found);

}  // namespace sluice::engine
