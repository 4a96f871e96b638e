#include "lock/simulation/campaign.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "lock/simulation/world.hpp"

namespace sluice::simulation {
namespace {

constexpr std::size_t told_events = 50;

/// Seeds that run a branch which few others run. They make the search for branches short, and are
/// not needed for it; `lock_simulation --branches --profile P --primitive X --seeds A..B` finds
/// more.
struct Rare {
  std::string_view profile;
  std::string_view primitive;
  std::uint64_t seed;
};
constexpr Rare rare_seeds[] = {
    {"operators", "permit", 763}, {"operators", "permit", 564}, {"operators", "mutex", 206},
    {"operators", "mutex", 443},  {"operators", "fair", 86},    {"operators", "fair", 206},
    {"owners", "mutex", 799},     {"owners", "shared", 41},     {"owners", "shared", 334},
    {"owners", "shared", 122},    {"spoilt", "mutex", 11},      {"spoilt", "mutex", 21},
    {"spoilt", "multi", 112},     {"spoilt", "shared", 39},     {"spoilt", "limiter", 0},
    {"spoilt", "fence", 11},      {"guests", "fair", 22},       {"guests", "fair", 33},
    {"stopped", "mutex", 33},     {"spoilt", "limiter", 4},     {"spoilt", "limiter", 6},
    {"spoilt", "limiter", 8},     {"spoilt", "semaphore", 16},  {"spoilt", "fair", 24},
    {"spoilt", "semaphore", 24},  {"spoilt", "permit", 24},     {"stopped", "multi", 32},
    {"spoilt", "shared", 32},     {"operators", "shared", 40},  {"spoilt", "mutex", 40},
    {"guests", "fair", 40},       {"spoilt", "limiter", 56},    {"spoilt", "limiter", 58},
    {"operators", "permit", 72},  {"guests", "fair", 72},       {"operators", "shared", 80},
    {"spoilt", "limiter", 80},    {"usual", "semaphore", 1},    {"stopped", "quorum", 1},
    {"operators", "limiter", 1},  {"spoilt", "fair", 1},        {"spoilt", "shared", 1},
    {"spoilt", "semaphore", 1},   {"spoilt", "quorum", 1},      {"spoilt", "latch", 1},
    {"usual", "limiter", 2},      {"operators", "limiter", 2},  {"spoilt", "shared", 2},
    {"strangers", "mutex", 2},
};

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument{fmt::format("'{}' is no seed", text)};
  return number;
}

std::string how_to_repeat(const Campaign& campaign, std::uint64_t seed) {
  const auto mutated =
      campaign.mutation.empty() ? std::string{} : fmt::format(" --mutation {}", campaign.mutation);
  const auto profile =
      campaign.profile == "usual" ? std::string{} : fmt::format(" --profile {}", campaign.profile);
  const auto drift =
      campaign.drift > 0 ? fmt::format(" --drift {}", campaign.drift) : std::string{};
  return fmt::format("lock_simulation --primitive {}{} --seeds {}{}{}", campaign.primitive, profile,
                     seed, mutated, drift);
}

Outcome outcome_of(const Campaign& campaign, std::uint64_t seed, bool keeps_journal) {
  Mutation mutation = mutation_named(campaign.mutation);
  if (campaign.drift > 0) mutation.drift = campaign.drift;
  return run_seed(seed, trouble_named(campaign.profile), primitive_named(campaign.primitive),
                  mutation, keeps_journal);
}

std::string told(const Campaign& campaign, std::uint64_t seed, const std::string& violation) {
  const auto again = outcome_of(campaign, seed, true);
  const auto& lines = again.lines;
  const auto from = lines.size() > told_events ? lines.end() - told_events : lines.begin();
  return fmt::format("seed {}: {}\nplayed: {}\nagain: {}\nthe last events:\n{}\n", seed,
                     again.violation.value_or("not found again: " + violation), again.profile,
                     how_to_repeat(campaign, seed),
                     fmt::join(std::vector(from, lines.end()), "\n"));
}

}  // namespace

Seeds seeds_of(std::string_view text) {
  const auto dots = text.find("..");
  const auto first = number_of(text.substr(0, dots));
  const Seeds seeds{first,
                    dots == std::string_view::npos ? first : number_of(text.substr(dots + 2))};
  if (seeds.last < seeds.first)
    throw std::invalid_argument{fmt::format("'{}' goes backwards", text)};
  return seeds;
}

std::optional<Failure> first_failure(const Campaign& campaign, Seeds seeds) {
  if (!trouble_named(campaign.profile).plays(campaign.primitive))
    throw std::invalid_argument{
        fmt::format("'{}' is not played with '{}'", campaign.profile, campaign.primitive)};
  for (auto seed = seeds.first;; ++seed) {
    if (const auto violation = outcome_of(campaign, seed, false).violation)
      return Failure{.seed = seed, .text = told(campaign, seed, *violation)};
    if (seed == seeds.last) return std::nullopt;
  }
}

void run_for_branches(const Campaign& campaign, Seeds seeds, Branches& branches) {
  for (auto seed = seeds.first;; ++seed) {
    (void)run_seed(seed, trouble_named(campaign.profile), primitive_named(campaign.primitive),
                   mutation_named(""), false, &branches);
    if (seed == seeds.last) return;
  }
}

void run_for_branches(Seeds seeds, Branches& branches) {
  for (const auto& [profile, primitive, seed] : rare_seeds)
    (void)run_seed(seed, trouble_named(profile), primitive_named(primitive), mutation_named(""),
                   false, &branches);
  constexpr std::uint64_t longest_pause = 8;
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> pauses;
  for (auto seed = seeds.first;; ++seed) {
    for (const auto& trouble : all_troubles()) {
      for (const auto& primitive : all_primitives()) {
        auto& pause = pauses.try_emplace({trouble.name, primitive.name}, 1).first->second;
        if (!trouble.plays(primitive.name) || seed % pause != 0) continue;
        const auto missed = branches.missed();
        if (missed == 0) return;
        (void)run_seed(seed, trouble, primitive, mutation_named(""), false, &branches);
        pause = branches.missed() < missed ? 1 : std::min(2 * pause, longest_pause);
      }
    }
    if (seed == seeds.last) return;
  }
}

std::vector<std::string> trace_of(const Campaign& campaign, std::uint64_t seed) {
  return outcome_of(campaign, seed, true).lines;
}

}  // namespace sluice::simulation
