/// Places as numbers of 52 bits, as Redis keeps them for scores: the bits of latitude and longitude
/// in turn, so that places near each other have few first bits in which they differ. Pure.
///
/// The arithmetic is Redis's to the last bit; a test compares each reply with a server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::engine {

/// In degrees.
struct Place {
  double longitude = 0;  ///< -180 to 180
  double latitude = 0;   ///< within most_latitude
};
inline constexpr double most_longitude = 180;
inline constexpr double most_latitude = 85.05112878;  ///< where the projection ends

/// A field of a grid with 2^step by 2^step fields.
struct GeoCell {
  std::uint32_t latitude = 0;
  std::uint32_t longitude = 0;
  unsigned step = 0;  ///< 1 to 26

  bool operator==(const GeoCell&) const = default;
  /// Scores in [first, last) are in the cell.
  double first_score() const noexcept { return score_of(bits()); }
  double last_score() const noexcept { return score_of(bits() + 1); }

 private:
  std::uint64_t bits() const noexcept;
  double score_of(std::uint64_t bits) const noexcept {
    return static_cast<double>(bits << (52 - 2 * step));
  }
};

double score_of(const Place& place) noexcept;
/// The middle of the smallest cell; any score is taken for one.
Place place_of(double score) noexcept;
/// The 11 letters of geohash.org.
std::string geohash_of(const Place& place);
/// In metres, along the surface.
double distance_between(const Place& one, const Place& other) noexcept;

/// A circle, or a box along the degrees.
struct GeoShape {
  Place centre;
  bool is_box = false;
  double radius = 0;  ///< in metres, as the others
  double width = 0;
  double height = 0;

  /// `distance` is set where it is true.
  bool contains(const Place& place, double& distance) const noexcept;
  /// Cells that cover it, without repeats that are neighbours in this order.
  std::vector<GeoCell> cells() const;
};

}  // namespace sluice::engine
