// What is written together does not end together: each expiry that many keys of a guard share.
//
// The others that src sets are of one key each (the budget, a sale's recovery,
// `sluice:service:alive`), are counted from the last use of their key and nothing is loaded when
// they end (tokens, queues and limiters), or are what a caller was promised to the millisecond
// (leases, logouts). Leases of loads are at most
// `max_loads` in a process.
#include <fmt/chrono.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

constexpr std::chrono::milliseconds life = 100s;
using Ends = std::vector<std::chrono::nanoseconds>;

class Expiries : public Guards {
 protected:
  struct Expiry {
    const char* name;
    std::chrono::milliseconds spread;  ///< over which its ends are to lie
    std::function<Ends()> ends;
  };

  static CacheGuardOptions usual() {
    return {.ttl = life, .jitter = 0.1, .early = 0, .absent_ttl = life, .absent_budget = 100'000};
  }
  std::chrono::nanoseconds now() { return clock_.steady().time_since_epoch(); }

  /// Of what lies in the store, of two guards. `pause`: between two that are written.
  Ends in_store(std::optional<std::string> row, std::chrono::milliseconds pause) {
    store_->run({"FLUSHALL"}).get();
    Cache users{line_, "user", usual()};
    Cache teams{far_, "team", usual()};
    source_.write(std::move(row));
    Ends ends;
    for (int i = 0; i < 5000; ++i) {
      const bool is_user = i % 2 == 0;
      const auto key = std::to_string(i);
      (is_user ? users : teams).get(key, source_.loader()).get();
      ends.push_back(now() + ttl((is_user ? "user:" : "team:") + key));
      clock_.advance(pause);
    }
    return ends;
  }

  /// Of copies in the process: when `is_known` begins to say no.
  Ends in_process(int keys, const std::function<bool(const std::string&)>& is_known) {
    Ends ends;
    std::vector<std::string> left;
    for (int i = 0; i < keys; ++i) left.push_back(std::to_string(i));
    clock_.advance(life * 89 / 100);  // before the first of them
    for (const auto last = now() + life; !left.empty() && now() < last;) {
      const auto ended = std::erase_if(left, [&](const auto& key) { return !is_known(key); });
      ends.insert(ends.end(), ended, now());
      clock_.advance(life / 1000);
    }
    return ends;
  }
  Ends of_near_copies() {
    auto options = usual();
    options.ttl = 1h;
    options.near_ttl = life;
    options.near_bytes = 64 << 20;
    Cache cache{line_, "near", options};
    source_.write("one");
    for (int i = 0; i < 5000; ++i)
      for (int times = 0; times < 2; ++times) cache.get(std::to_string(i), source_.loader()).get();
    line_.plan = [](std::string_view) { return Fault::refused; };
    Ends ends = in_process(
        5000, [&](const auto& key) { return !error_of(cache.get(key, source_.loader())); });
    line_.plan = [](std::string_view) { return Fault::none; };
    return ends;
  }
  Ends of_failures() {
    auto options = usual();
    options.failure_ttl = life;
    Cache cache{line_, "fails", options};
    int loads = 0;
    const auto fails = [&]() -> std::string { throw ++loads; };
    const auto is_known = [&](const std::string& key) {
      const int before = loads;
      EXPECT_THROW(cache.get(key, fails).get(), int);
      return loads == before;
    };
    for (int i = 0; i < 1000; ++i) is_known(std::to_string(i));
    return in_process(1000, is_known);
  }
};

TEST_F(Expiries, BC05_EndSpread) {
  const std::vector<Expiry> all{
      {"values", life / 10, [&] { return in_store("one", 0ms); }},
      {"absences of one moment", life, [&] { return in_store(std::nullopt, 0ms); }},
      {"absences that come steadily", life, [&] { return in_store(std::nullopt, 20ms); }},
      {"near copies", life / 10, [&] { return of_near_copies(); }},
      {"failures", life / 10, [&] { return of_failures(); }},
  };
  for (const auto& expiry : all) {
    const Ends ends = expiry.ends();
    std::map<std::int64_t, std::size_t> hundredths;
    for (const auto end : ends) ++hundredths[end / (expiry.spread / 100)];
    std::size_t most = 0;
    for (const auto& [when, count] : hundredths) most = std::max(most, count);
    EXPECT_GE(ends.size(), 1000U) << expiry.name;
    EXPECT_LE(most, ends.size() / 100 * 4) << fmt::format(
        "of {} {} so many end within {}", ends.size(), expiry.name, expiry.spread / 100);
  }
}

}  // namespace
}  // namespace sluice
