/// SCAN over all servers, one after the other: where it stands, in the one number that the client
/// has.
///
/// Its lowest 20 bits tell which server, in as many of them as that takes, and with the rest by
/// which list of servers; what is above is that server's own cursor; 0 is the beginning and the
/// end. A server's cursor is below the size of its table of keys, so with fewer than 2^33 keys on a
/// server the number stays below 2^53, which every client can hold.
///
/// Guarantee: as Redis gives it: what is there from the beginning to the end is seen at least once.
///   A cursor of another list of servers, or of another database, is refused; of one such cursor in
///   2^18 (with three or four servers; of a lone server 2^20) it is not noticed.
/// Not guaranteed: that a scan goes on over such a change, or notices a failover that Sentinels
///   lead or a server that was started again: begin again. That it sees keys of a slot that moves
///   meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy::flow {

struct ScanCursor {
  std::size_t place = 0;     ///< of the server
  std::uint64_t cursor = 0;  ///< its own

  bool operator==(const ScanCursor&) const = default;
};

/// The servers that a scan goes over.
class ScanList {
 public:
  static constexpr std::size_t most_servers = std::size_t{1} << 12;

  /// `what`: names of the servers in their order, and what else cursors hang on. REQUIRES: servers
  /// are 1 to most_servers.
  ScanList(std::size_t servers, std::string_view what) noexcept;

  /// Empty: no number that next() could have given.
  std::optional<ScanCursor> read(std::string_view text) const noexcept;
  /// What follows the answer `cursor` (decimal) of the server at `place`: the same server, the
  /// next, or the end. Empty: it has no number that can be passed on.
  std::optional<std::string> next(std::size_t place, std::string_view cursor) const;

 private:
  std::size_t servers_;
  unsigned place_bits_;
  std::uint64_t tag_;
};

}  // namespace sluice::proxy::flow
