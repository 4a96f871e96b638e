#include "engine/types/geohash.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::engine {
namespace {

constexpr unsigned finest = 26;
constexpr double earth_radius = 6372797.560856;  // metres
constexpr double radian = std::numbers::pi / 180.0;

constexpr int shifts[] = {1, 2, 4, 8, 16};
constexpr std::uint64_t masks[] = {0x5555555555555555U, 0x3333333333333333U, 0x0F0F0F0F0F0F0F0FU,
                                   0x00FF00FF00FF00FFU, 0x0000FFFF0000FFFFU};

/// Bit i goes to 2i.
std::uint64_t spread(std::uint32_t number) noexcept {
  std::uint64_t bits = number;
  for (int i = 4; i >= 0; --i) bits = (bits | bits << shifts[i]) & masks[i];
  return bits;
}
std::uint32_t gathered(std::uint64_t bits) noexcept {
  bits &= masks[0];
  for (int i = 1; i < 5; ++i) bits = (bits | bits >> shifts[i - 1]) & masks[i];
  return static_cast<std::uint32_t>(bits | bits >> 16);
}

/// Where in 2^step parts of [-most, most] a number is.
std::uint32_t part_of(double number, double most, unsigned step) noexcept {
  return static_cast<std::uint32_t>((number + most) / (2 * most) *
                                    static_cast<double>(1ULL << step));
}
GeoCell cell_of(const Place& place, unsigned step, double latitudes = most_latitude) noexcept {
  return {part_of(place.latitude, latitudes, step), part_of(place.longitude, most_longitude, step),
          step};
}

struct Range {
  double least, most;
};
Range range_of(std::uint32_t part, double most, unsigned step) noexcept {
  const auto end = [&](std::uint32_t at) { return -most + at * 1.0 / (1ULL << step) * (2 * most); };
  return {end(part), end(part + 1)};
}
Range latitudes_of(const GeoCell& cell) noexcept {
  return range_of(cell.latitude, most_latitude, cell.step);
}
Range longitudes_of(const GeoCell& cell) noexcept {
  return range_of(cell.longitude, most_longitude, cell.step);
}
double middle_of(Range range, double most) noexcept {
  return std::clamp((range.least + range.most) / 2, -most, most);
}

GeoCell moved(GeoCell cell, int north, int east) noexcept {
  const auto mask = static_cast<std::uint32_t>((1ULL << cell.step) - 1);
  if (north != 0) cell.latitude = (cell.latitude + static_cast<std::uint32_t>(north)) & mask;
  if (east != 0) cell.longitude = (cell.longitude + static_cast<std::uint32_t>(east)) & mask;
  return cell;
}

double distance_of_latitudes(double one, double other) noexcept {
  return earth_radius * std::fabs(other * radian - one * radian);
}

/// Redis leaves it to the processor what a number outside of 64 bits becomes; here what x86 makes.
std::uint64_t bits_of(double score) noexcept {
  constexpr double two_to_63 = 9223372036854775808.0;
  if (score >= 2 * two_to_63) return 0;
  if (score >= two_to_63) return static_cast<std::uint64_t>(score);
  if (!(score >= -two_to_63)) return 1ULL << 63;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(score));
}

/// So many that the cell of the centre and its neighbours cover the shape, mostly.
unsigned step_for(double radius, double latitude) noexcept {
  constexpr double mercator_most = 20037726.37;
  if (radius == 0) return finest;
  int step = -1;
  for (; radius < mercator_most; radius *= 2) ++step;
  if (std::fabs(latitude) > 66) --step;
  if (std::fabs(latitude) > 80) --step;
  return static_cast<unsigned>(std::clamp(step, 1, static_cast<int>(finest)));
}

struct Bounds {
  Range latitudes, longitudes;
};

Bounds bounds_of(const GeoShape& shape) noexcept {
  const auto [longitude, latitude] = shape.centre;
  const double height = shape.is_box ? shape.height / 2 : shape.radius;
  const double width = shape.is_box ? shape.width / 2 : shape.radius;
  const double north = height / earth_radius / radian;
  const double widest = latitude < 0 ? latitude - north : latitude + north;
  const double east = width / earth_radius / std::cos(widest * radian) / radian;
  return {{latitude - north, latitude + north}, {longitude - east, longitude + east}};
}

bool is_too_small(const GeoCell& cell, const Bounds& bounds) noexcept {
  return latitudes_of(moved(cell, 1, 0)).most < bounds.latitudes.most ||
         latitudes_of(moved(cell, -1, 0)).least > bounds.latitudes.least ||
         longitudes_of(moved(cell, 0, 1)).most < bounds.longitudes.most ||
         longitudes_of(moved(cell, 0, -1)).least > bounds.longitudes.least;
}

}  // namespace

std::uint64_t GeoCell::bits() const noexcept { return spread(latitude) | spread(longitude) << 1; }

double score_of(const Place& place) noexcept { return cell_of(place, finest).first_score(); }

Place place_of(double score) noexcept {
  const auto bits = bits_of(score);
  const GeoCell cell{gathered(bits), gathered(bits >> 1), finest};
  return {middle_of(longitudes_of(cell), most_longitude),
          middle_of(latitudes_of(cell), most_latitude)};
}

std::string geohash_of(const Place& place) {
  constexpr std::string_view letters = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr double all_latitudes = 90;
  const auto bits = static_cast<std::uint64_t>(cell_of(place, finest, all_latitudes).first_score());
  std::string text;
  for (int i = 1; i <= 10; ++i) text += letters[bits >> (52 - 5 * i) & 31];
  return text + '0';  // 52 bits have no more
}

double distance_between(const Place& one, const Place& other) noexcept {
  const double v = std::sin((other.longitude * radian - one.longitude * radian) / 2);
  if (v == 0) return distance_of_latitudes(one.latitude, other.latitude);
  const double first = one.latitude * radian;
  const double second = other.latitude * radian;
  const double u = std::sin((second - first) / 2);
  const double a = u * u + std::cos(first) * std::cos(second) * v * v;
  return 2.0 * earth_radius * std::asin(std::sqrt(a));
}

bool GeoShape::contains(const Place& place, double& distance) const noexcept {
  if (is_box && (distance_of_latitudes(place.latitude, centre.latitude) > height / 2 ||
                 distance_between(place, {centre.longitude, place.latitude}) > width / 2))
    return false;
  distance = distance_between(centre, place);
  return is_box || !(distance > radius);
}

std::vector<GeoCell> GeoShape::cells() const {
  const auto bounds = bounds_of(*this);
  const double reach =
      is_box ? std::sqrt(width / 2 * (width / 2) + height / 2 * (height / 2)) : radius;
  auto cell = cell_of(centre, step_for(reach, centre.latitude));
  if (cell.step > 1 && is_too_small(cell, bounds)) cell = cell_of(centre, cell.step - 1);
  const bool may_leave_out = cell.step >= 2;
  const auto latitudes = latitudes_of(cell);
  const auto longitudes = longitudes_of(cell);
  std::vector<GeoCell> cells{cell};
  static constexpr int ways[][2] = {{1, 0}, {-1, 0}, {0, 1},  {0, -1},
                                    {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
  for (const auto [north, east] : ways) {
    const bool is_outside = (north > 0 && latitudes.most > bounds.latitudes.most) ||
                            (north < 0 && latitudes.least < bounds.latitudes.least) ||
                            (east > 0 && longitudes.most > bounds.longitudes.most) ||
                            (east < 0 && longitudes.least < bounds.longitudes.least);
    const auto neighbour = moved(cell, north, east);
    if (may_leave_out && is_outside) continue;
    if (cells.size() == 1 || cells.back() != neighbour) cells.push_back(neighbour);
  }
  return cells;
}

}  // namespace sluice::engine
