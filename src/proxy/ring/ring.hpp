/// Which server has a key: a pure value, made once for each set of live servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/hash/hash.hpp"

namespace sluice::proxy {

enum class Distribution : std::uint8_t { ketama, modula, random };
std::string_view to_string(Distribution distribution) noexcept;
std::optional<Distribution> find_distribution(std::string_view name) noexcept;

/// The two characters between which the part of a key stands that is hashed.
struct HashTag {
  char open;
  char close;

  bool operator==(const HashTag&) const = default;
};

/// The part of `key` that is hashed: what is between the first opening tag and the first closing
/// one after it; all of it if that is nothing.
std::string_view hashed_part(std::string_view key, std::optional<HashTag> tag) noexcept;

struct RingServer {
  std::string name;
  std::uint32_t weight = 1;
};

class Ring {
 public:
  /// A server's place. It has the places after the point before it up to its own (ketama: hashes,
  /// and past the last point the first one's server; modula: hash % sum of weights, so that a
  /// server's point ends its run).
  struct Point {
    std::uint32_t value;
    std::uint32_t server;
  };

  Ring() = default;
  /// `servers`: all of the pool in twemproxy's order; `live`: which of them take part (empty: all),
  /// an index each. The indices that server_of() gives are of `servers`. O(points log points). A
  /// server whose weight is too small a share may get no point at all, as in twemproxy.
  Ring(Distribution distribution, std::span<const RingServer> servers,
       std::span<const std::uint32_t> live = {});

  /// REQUIRES: !empty(). `random` counts for Distribution::random alone. O(1) on average, no
  /// allocation.
  std::uint32_t server_of(std::uint32_t hash, std::uint32_t random = 0) const noexcept;

  /// The server of a hash, and the last hash up to which it is the same one. REQUIRES: ketama or
  /// modula, !empty().
  struct Run {
    std::uint32_t server;
    std::uint32_t last;
  };
  Run run_of(std::uint32_t hash) const noexcept;

  bool empty() const noexcept { return size_ == 0; }
  Distribution distribution() const noexcept { return distribution_; }
  /// In the order of their values. `random`: one for each server.
  std::span<const Point> points() const noexcept { return {points_.data(), size_}; }
  /// How many places there are: 2^32, of `modula` the sum of weights.
  std::uint64_t places() const noexcept { return places_; }

 private:
  void index_points(std::uint32_t last_place);
  std::uint32_t place_of(std::uint32_t hash) const noexcept;
  const Point& point_of(std::uint32_t place) const noexcept;

  Distribution distribution_ = Distribution::ketama;
  int shift_ = 0;
  std::size_t size_ = 0;
  std::uint64_t places_ = 0;
  std::vector<Point> points_;          // and one more, which ends every search
  std::vector<std::uint32_t> starts_;  // by the upper bits of a place: the first point to look at
};

/// From a key to its server: tag, hash and ring in one.
class Homes {
 public:
  Homes() = default;
  Homes(Hash hash, CharSign sign, std::optional<HashTag> tag, Ring ring, bool single);

  /// Index in the pool's sorted servers. REQUIRES: !empty(). A pool of one server hashes nothing.
  std::uint32_t of(std::string_view key, std::uint32_t random = 0) const noexcept;
  std::uint32_t hash_of(std::string_view key) const noexcept;
  bool empty() const noexcept { return ring_.empty(); }
  const Ring& ring() const noexcept { return ring_; }

  /// Whether every key has the same hash here and there.
  bool hashes_like(const Homes& other) const noexcept;
  /// The largest hash that a key can have: 15 bits with crc32, else 32.
  std::uint32_t largest_hash() const noexcept;

 private:
  HashFunction hash_ = nullptr;
  std::optional<HashTag> tag_;
  Ring ring_;
  bool single_ = false;  // the pool has one server (not: one that lives)
};

// movement.cpp: how the keys lie on the servers, and how they move from one ring to another, as
// shares of all keys, as if every hash were as likely as any other.

struct Movement {
  bool exact = true;                                                 ///< false: found on a sample
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> shares;  ///< {server before, after}
};

/// REQUIRES: neither is empty nor `random`. By the arcs of the two rings when the hashes are the
/// same ones and the arcs are few enough to walk (always with ketama), else on four million hashes;
/// when the hashes differ, on a million keys "key:N". `keys`: on these, and on nothing else.
Movement movement_of(const Homes& before, const Homes& after,
                     std::span<const std::string> keys = {});

/// The share of each of `servers` servers. REQUIRES: as above.
std::vector<double> shares_of(const Homes& homes, std::size_t servers);

}  // namespace sluice::proxy
