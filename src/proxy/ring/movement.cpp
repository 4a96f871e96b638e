#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "proxy/ring/ring.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t most_arcs = std::size_t{1} << 22;
constexpr std::size_t sampled_hashes = std::size_t{1} << 22;
constexpr std::size_t sampled_keys = 1'000'000;

/// Counts for each pair of servers, made shares at the end.
class Tally {
 public:
  void add(std::uint32_t before, std::uint32_t after, std::uint64_t many = 1) {
    counts_[{before, after}] += many;
    total_ += many;
  }
  Movement movement(bool exact) const {
    Movement result{exact, {}};
    for (const auto& [servers, count] : counts_)
      result.shares[servers] = static_cast<double>(count) / static_cast<double>(total_);
    return result;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

/// The hashes after which two tables of modula begin together again; all, when a ring is among
/// them.
std::uint64_t period_of(const Homes& before, const Homes& after) {
  const auto all = std::uint64_t{before.largest_hash()} + 1;
  const auto is_table = [](const Homes& homes) {
    return homes.ring().distribution() == Distribution::modula;
  };
  if (!is_table(before) || !is_table(after)) return all;
  const auto here = before.ring().places();
  const auto there = after.ring().places();
  return std::min(all, here / std::gcd(here, there) * there);  // both below 2^32
}

/// From arc to arc; empty: they are too many.
std::optional<Movement> walk(const Homes& before, const Homes& after) {
  Tally tally;
  const auto end = period_of(before, after);
  std::size_t arcs = 0;
  for (std::uint64_t hash = 0; hash < end;) {
    if (++arcs > most_arcs) return std::nullopt;
    const auto here = before.ring().run_of(static_cast<std::uint32_t>(hash));
    const auto there = after.ring().run_of(static_cast<std::uint32_t>(hash));
    const auto next = std::min(end, std::uint64_t{std::min(here.last, there.last)} + 1);
    tally.add(here.server, there.server, next - hash);
    hash = next;
  }
  return tally.movement(true);
}

Movement sample_hashes(const Homes& before, const Homes& after) {
  std::mt19937 random{1};  // the same answer each time
  std::uniform_int_distribution<std::uint32_t> hashes{0, before.largest_hash()};
  Tally tally;
  for (std::size_t i = 0; i < sampled_hashes; ++i) {
    const auto hash = hashes(random);
    tally.add(before.ring().server_of(hash), after.ring().server_of(hash));
  }
  return tally.movement(false);
}

Movement sample_keys(const Homes& before, const Homes& after) {
  Tally tally;
  for (std::size_t i = 0; i < sampled_keys; ++i) {
    const auto key = "key:" + std::to_string(i);
    tally.add(before.of(key), after.of(key));
  }
  return tally.movement(false);
}

}  // namespace

Movement movement_of(const Homes& before, const Homes& after, std::span<const std::string> keys) {
  if (!keys.empty()) {
    Tally tally;
    for (const auto& key : keys) tally.add(before.of(key), after.of(key));
    return tally.movement(true);
  }
  if (!before.hashes_like(after)) return sample_keys(before, after);
  if (auto exact = walk(before, after)) return *std::move(exact);
  return sample_hashes(before, after);
}

std::vector<double> shares_of(const Homes& homes, std::size_t servers) {
  std::vector<double> shares(servers);
  for (const auto& [pair, share] : movement_of(homes, homes).shares) shares[pair.first] += share;
  return shares;
}

}  // namespace sluice::proxy
