#include "proxy/storm/storm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/storm/mutation.hpp"
#include "proxy/storm/shrink.hpp"
#include "proxy/storm/weather.hpp"
#include "support/process.hpp"

namespace sluice::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A reply that another client took is missed by one, and is wrong for the next.
bool is_like(const Finding& one, const Finding& other) {
  using enum Finding::Kind;
  const auto is_reply = [](const Finding& finding) {
    return finding.kind == canary || finding.kind == sentinel;
  };
  return one.kind == other.kind || (is_reply(one) && is_reply(other));
}

}  // namespace

Storm::Storm(StormOptions options, Tell tell)
    : options_(std::move(options)),
      tell_(std::move(tell)),
      tongue_(make_tongue(options_.language, options_.strict)) {
  if (!options_.avoid.empty()) avoided_.emplace(options_.avoid);
}

std::string Storm::request(Random& random) const {
  for (;;) {
    auto bytes = tongue_->hostile_request(random);
    if (!avoided_ || !std::regex_search(printable(bytes), *avoided_)) return bytes;
  }
}

Batch Storm::make_batch(Random& random) const {
  Batch batch;
  for (auto left = up_to(random, 6); left > 0; --left) batch.requests.push_back(request(random));
  std::size_t size = 0;
  for (const auto& each : batch.requests) size += each.size();
  if (one_in(random, 3))
    for (auto left = 1 + up_to(random, 2); left > 0; --left)
      batch.writes.push_back(1 + up_to(random, one_in(random, 2) ? std::size_t{8} : size));
  batch.connects = one_in(random, 4);
  batch.vanishes = one_in(random, 20);
  return batch;
}

Round Storm::make_round(std::uint64_t number) const {
  Random random{options_.seed * 0x9e3779b97f4a7c15 + number};
  Round round;
  for (std::size_t client = 0; client < options_.stage.clients; ++client)
    round.push_back(make_batch(random));
  return round;
}

std::optional<Finding> Storm::replay(const Case& rounds, std::chrono::milliseconds patience) {
  auto options = options_.stage;
  options.canary.patience = patience;
  Stage stage{*tongue_, options};
  for (const auto& round : rounds)
    if (auto found = stage.play(round)) return found;
  return stage.inspect();
}

void Storm::tell(std::uint64_t round, const Finding& finding) {
  tell_(fmt::format("after {} requests, in round {} of seed {} ({}):\n  {}", requests_, round,
                    options_.seed, options_.language, finding.text));
  if (!options_.shrinks) return;
  constexpr std::size_t most = 2000;
  constexpr std::chrono::seconds time_to_shrink{60};
  const auto patience =
      std::max(options_.stage.canary.patience / 10, std::chrono::milliseconds{300});
  const auto until = Clock::now() + time_to_shrink;
  const auto fails = [&](const Case& rounds) {
    if (Clock::now() > until) return false;
    const auto found = replay(rounds, patience);
    return found && is_like(*found, finding);
  };
  Case rounds;
  for (std::size_t last = 1; last <= played_.size(); last *= 8) {
    rounds.assign(played_.end() - static_cast<std::ptrdiff_t>(last), played_.end());
    if (fails(rounds)) break;
    rounds.clear();
  }
  if (rounds.empty()) {
    tell_("  played again, it does not fail; the last round was\n" +
          printable(Case{played_.back()}));
    return;
  }
  tell_("  least input:\n" + printable(shrink(std::move(rounds), fails, most)));
}

std::uint64_t Storm::run_in_chaos() {
  auto options = options_.stage;
  options.as_program = true;
  options.canary.forgives = true;
  Stage stage{*tongue_, options};
  Chaos chaos{*tongue_};
  Random random{options_.seed};
  std::uint64_t played = 0;
  std::optional<Finding> found;
  for (const auto until = Clock::now() + options_.time; !found && Clock::now() < until; ++played) {
    const auto round = make_round(options_.first + played);
    for (const auto& batch : round) requests_ += batch.requests.size();
    found = stage.play(round);
    if (!found) chaos.act(stage, random);
  }
  tell_(fmt::format("{} requests in {} of seed {}; {}; canaries: {} right replies, {} losses",
                    requests_, options_.language, options_.seed, chaos.told(), stage.replies(),
                    stage.losses()));
  if (found) tell_("  " + found->text + '\n' + stage.proxy().program()->log());
  return found ? 1 : 0;
}

void Storm::compare_latencies(std::size_t hostile, std::chrono::milliseconds pause) {
  auto options = options_.stage;
  options.as_program = true;
  options.canary.pace = std::chrono::milliseconds{1};
  Stage stage{*tongue_, options};
  Random random{options_.seed};
  std::vector<Batch> batches;
  while (batches.size() < 20'000) batches.push_back(make_batch(random));
  const auto tell_of = [&](std::string_view what, const LatencyCounts& counts) {
    tell_(fmt::format("{}: {} replies, p50 {} us, p99 {} us, p99.9 {} us", what, counts.count(),
                      counts.quantile(0.5).count(), counts.quantile(0.99).count(),
                      counts.quantile(0.999).count()));
  };
  const auto time = options_.time / 2;
  auto found = stage.idle(time / 10);
  const auto before = stage.latencies();
  if (!found) found = stage.idle(time);
  const auto alone = stage.latencies();
  tell_of("canaries alone", alone.since(before));
  Process pests{[&]() -> int { harass(stage.proxy().port(), hostile, batches, pause); }};
  if (!found) found = stage.idle(time / 10);
  const auto warm = stage.latencies();
  if (!found) found = stage.idle(time);
  tell_of(fmt::format("beside {} hostile clients", hostile), stage.latencies().since(warm));
  if (found) tell_("  " + found->text);
}

std::uint64_t Storm::run() {
  constexpr std::size_t rounds_of_a_stage = 1000;
  std::uint64_t findings = 0;
  const auto until = Clock::now() + options_.time;
  const auto goes_on = [&](std::uint64_t played) {
    return options_.time.count() > 0 ? Clock::now() < until : played < options_.rounds;
  };
  std::optional<Stage> stage;
  for (std::uint64_t played = 0; goes_on(played) && findings < options_.findings; ++played) {
    const auto number = options_.first + played;
    std::optional<Finding> found;
    if (stage && played_.size() == rounds_of_a_stage) {
      found = stage->inspect();
      stage.reset();
    }
    if (!found) {
      if (!stage) {
        stage.emplace(*tongue_, options_.stage);
        played_.clear();
      }
      played_.push_back(make_round(number));
      for (const auto& batch : played_.back()) requests_ += batch.requests.size();
      found = stage->play(played_.back());
    }
    if (!found) continue;
    ++findings;
    stage.reset();
    tell(number, *found);
  }
  if (stage) {
    if (auto found = stage->inspect()) {
      ++findings;
      stage.reset();
      tell(options_.first, *found);
    }
  }
  tell_(fmt::format("{} requests in {} of seed {}: {} findings", requests_, options_.language,
                    options_.seed, findings));
  return findings;
}

}  // namespace sluice::test
