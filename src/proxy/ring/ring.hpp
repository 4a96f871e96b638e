/// Which server has a key: a pure value, made once for each set of live servers, and then only asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
};

/// What of `key` is hashed: between the first opening tag and the first closing one after it when there is anything
/// there, else all of it.
std::string_view hashed_part(std::string_view key, std::optional<HashTag> tag) noexcept;

struct RingServer {
  std::string name;
  std::uint32_t weight = 1;
};

class Ring {
 public:
  /// A place on the ring (ketama), or an entry of the table (modula: value is the place).
  struct Point {
    std::uint32_t value;
    std::uint32_t server;
  };

  Ring() = default;
  /// `servers`: all of the pool in twemproxy's order; `live`: which of them take part (empty: all), an index each.
  /// The indices that server_of() gives are of `servers`. O(points log points).
  Ring(Distribution distribution, std::span<const RingServer> servers,
       std::span<const std::uint32_t> live = {});

  /// REQUIRES: !empty(). `random` counts for Distribution::random alone. O(log points), no allocation.
  std::uint32_t server_of(std::uint32_t hash, std::uint32_t random = 0) const noexcept;

  bool empty() const noexcept { return points_.empty(); }
  std::span<const Point> points() const noexcept { return points_; }

 private:
  Distribution distribution_ = Distribution::ketama;
  std::vector<Point> points_;
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

 private:
  HashFunction hash_ = nullptr;
  std::optional<HashTag> tag_;
  Ring ring_;
  bool single_ = false;  // the pool has one server (not: one that lives)
};

}  // namespace sluice::proxy
