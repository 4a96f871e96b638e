/// SCAN over all servers, one after the other: where it stands, in the one number that the client
/// has.
///
/// Its lowest 12 bits tell which server, the rest is that server's own cursor; 0 is the beginning
/// and the end. A server's cursor is below the size of its table of keys, so with fewer
/// than 2^41 keys on a server the number stays below 2^53, which every client can hold.
///
/// Before a cluster the servers are in the order of their slots, and 8 bits more of the cursor tell
/// by its name which node is meant: another one has another table, and the client is told.
///
/// Guarantee: as Redis gives it: what is there from the beginning to the end is seen at least once.
/// Not guaranteed: that a scan goes on over a reload that changes the list of servers, or a
///   failover. Begin again. That it sees keys of a slot that moves meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::proxy::flow {

struct ScanCursor {
  static constexpr unsigned place_bits = 12;
  static constexpr std::size_t most_servers = std::size_t{1} << place_bits;

  std::size_t place = 0;     ///< of the server
  std::uint64_t cursor = 0;  ///< its own

  bool operator==(const ScanCursor&) const = default;
};

/// Empty: no number that next_scan_cursor() could have given for so many servers.
std::optional<ScanCursor> read_scan_cursor(std::string_view text, std::size_t servers) noexcept;

/// What follows the server's answer `cursor` (decimal): the same server, the next, or the end.
/// Empty: it has no number that can be passed on.
std::optional<std::string> next_scan_cursor(std::size_t place, std::string_view cursor,
                                            std::size_t servers);

// The same before a cluster, whose nodes have these names.

/// Empty also for a cursor of another node than has its place now.
std::optional<ScanCursor> read_scan_cursor(std::string_view text,
                                           std::span<const std::string> nodes) noexcept;
std::optional<std::string> next_scan_cursor(std::size_t place, std::string_view cursor,
                                            std::span<const std::string> nodes);

}  // namespace sluice::proxy::flow
