/// Stands in for base/random.cpp: the linker takes these. Ids that differ from run to run would put
/// hash tables into another order, and a seed would not repeat what it found. Each thread counts
/// from 1, and each seed runs on a thread of its own.
#include <fmt/format.h>

#include "base/random.hpp"
#include "lock/simulation/dice.hpp"

namespace sluice {
namespace {

simulation::Dice& dice() {
  thread_local simulation::Dice lots{20260101};
  return lots;
}

}  // namespace

/// For the keys of hash tables, drawn once by the thread that happens to be the first.
std::array<std::uint64_t, 2> random_128() { return {20260101, 20260102}; }

std::string random_hex_128() { return fmt::format("{:016x}{:016x}", dice().next(), dice().next()); }

std::string random_uuid() {
  auto text = random_hex_128();
  text[12] = '4';
  text[16] = '8';
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, 1, '-');
  return text;
}

std::uint64_t random_below(std::uint64_t bound) { return dice().below(bound); }

}  // namespace sluice
