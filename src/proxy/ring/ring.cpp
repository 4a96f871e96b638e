#include "proxy/ring/ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sluice::proxy {
namespace {

struct DistributionRow {
  Distribution distribution;
  std::string_view name;
};
constexpr std::array distribution_rows{DistributionRow{Distribution::ketama, "ketama"},
                                       DistributionRow{Distribution::modula, "modula"},
                                       DistributionRow{Distribution::random, "random"}};
using Servers = std::span<const RingServer>;
using Indices = std::span<const std::uint32_t>;
using Points = std::vector<Ring::Point>;

constexpr std::uint32_t last_hash = std::numeric_limits<std::uint32_t>::max();

std::uint32_t total_weight(Servers servers, Indices live) {
  std::uint32_t total = 0;  // wraps as twemproxy's does
  for (const auto index : live) total += servers[index].weight;
  return total;
}

/// How many names of a server are digested, four points each. Every step in float, as twemproxy
/// rounds it; only the small addition is made in double.
std::uint32_t digests_of(std::uint32_t weight, std::uint32_t total, std::size_t live) {
  constexpr float digests_of_a_server = 160.0F;
  const float share = static_cast<float>(weight) / static_cast<float>(total);
  const float digests = share * digests_of_a_server / 4.0F * static_cast<float>(live);
  return static_cast<std::uint32_t>(
      std::floor(static_cast<float>(static_cast<double>(digests) + 1e-10)));
}

Points ketama_points(Servers servers, Indices live) {
  const auto total = total_weight(servers, live);
  Points points;
  std::string name;
  for (const auto index : live) {
    const auto digests = digests_of(servers[index].weight, total, live.size());
    for (std::uint32_t i = 0; i < digests; ++i) {
      name.clear();
      name += fmt::format("{}-{}", servers[index].name, i);
      for (const auto value : md5_words(name)) points.push_back({value, index});
    }
  }
  // Of points with one value the first is found. The sort of twemproxy is glibc's qsort, which
  // merges, and so leaves them in the order of the servers; stable_sort promises it.
  std::ranges::stable_sort(points, {}, &Ring::Point::value);
  return points;
}

/// Each server stands at the last place of its run in twemproxy's table, so that a table of any
/// weights is small.
Points modula_points(Servers servers, Indices live) {
  Points points;
  std::uint32_t places = 0;
  for (const auto index : live) {
    places += servers[index].weight;
    points.push_back({places - 1, index});
  }
  return points;
}

Points random_points(Indices live) {
  Points points;
  for (const auto index : live)
    points.push_back({static_cast<std::uint32_t>(points.size()), index});
  return points;
}

std::vector<std::uint32_t> all_of(Servers servers) {
  std::vector<std::uint32_t> indices(servers.size());
  std::iota(indices.begin(), indices.end(), 0U);
  return indices;
}

}  // namespace

std::string_view to_string(Distribution distribution) noexcept {
  return std::ranges::find(distribution_rows, distribution, &DistributionRow::distribution)->name;
}

std::optional<Distribution> find_distribution(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(distribution_rows, name, &DistributionRow::name);
  if (found == distribution_rows.end()) return std::nullopt;
  return found->distribution;
}

Ring::Ring(Distribution distribution, Servers servers, Indices live) : distribution_(distribution) {
  const auto all = live.empty() ? all_of(servers) : std::vector<std::uint32_t>{};
  if (live.empty()) live = all;
  switch (distribution) {
    case Distribution::ketama: points_ = ketama_points(servers, live); break;
    case Distribution::modula: points_ = modula_points(servers, live); break;
    case Distribution::random: points_ = random_points(live); break;
  }
  size_ = points_.size();
  if (size_ == 0) return;
  const auto last_place = distribution == Distribution::ketama ? last_hash : points_.back().value;
  places_ = std::uint64_t{last_place} + 1;
  index_points(last_place);
}

/// A table over the upper bits of a place tells where the search begins; it has about two entries a
/// point, so that the search seldom takes a second step.
void Ring::index_points(std::uint32_t last_place) {
  points_.push_back(
      {last_hash, points_.front().server});  // past the last point the ring begins anew
  const auto wanted = static_cast<int>(std::bit_width(size_));
  shift_ = std::max(0, static_cast<int>(std::bit_width(last_place)) - wanted);
  starts_.resize((std::size_t{last_place} >> shift_) + 1);
  std::uint32_t point = 0;
  for (std::size_t slot = 0; slot < starts_.size(); ++slot) {
    while (point < size_ && points_[point].value >> shift_ < slot) ++point;
    starts_[slot] = point;
  }
}

std::uint32_t Ring::place_of(std::uint32_t hash) const noexcept {
  return distribution_ == Distribution::ketama ? hash : hash % static_cast<std::uint32_t>(places_);
}

const Ring::Point& Ring::point_of(std::uint32_t place) const noexcept {
  const Point* point = points_.data() + starts_[place >> shift_];
  while (point->value < place) ++point;  // ends at the last point, whose value none exceeds
  return *point;
}

std::uint32_t Ring::server_of(std::uint32_t hash, std::uint32_t random) const noexcept {
  if (distribution_ == Distribution::random) return points_[random % size_].server;
  return point_of(place_of(hash)).server;
}

Ring::Run Ring::run_of(std::uint32_t hash) const noexcept {
  const auto place = place_of(hash);
  const auto& point = point_of(place);
  const auto rest = point.value - place;
  return {point.server, rest > last_hash - hash ? last_hash : hash + rest};
}

std::string_view hashed_part(std::string_view key, std::optional<HashTag> tag) noexcept {
  if (!tag) return key;
  const auto open = key.find(tag->open);
  if (open == std::string_view::npos) return key;
  const auto close = key.find(tag->close, open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;  // a later tag is not tried
  return key.substr(open + 1, close - open - 1);
}

Homes::Homes(Hash hash, CharSign sign, std::optional<HashTag> tag, Ring ring, bool single)
    : hash_(hash_function(hash, sign)), tag_(tag), ring_(std::move(ring)), single_(single) {}

std::uint32_t Homes::hash_of(std::string_view key) const noexcept {
  const auto part = hashed_part(key, tag_);
  return part.empty() ? 0 : hash_(part);
}

bool Homes::hashes_like(const Homes& other) const noexcept {
  return hash_ == other.hash_ && tag_ == other.tag_;
}

std::uint32_t Homes::largest_hash() const noexcept {
  return hash_ == hash_function(Hash::crc32) ? 0x7fff : std::numeric_limits<std::uint32_t>::max();
}

std::uint32_t Homes::of(std::string_view key, std::uint32_t random) const noexcept {
  if (single_) return 0;
  if (ring_.distribution() == Distribution::random) return ring_.server_of(0, random);
  return ring_.server_of(hash_of(key));
}

}  // namespace sluice::proxy
