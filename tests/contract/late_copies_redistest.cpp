// For every call that may be sent again: its first copy is held by the network, the client comes
// again on another line and goes on, and the copy arrives at each later point of a history. What
// was acknowledged meanwhile stands.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "contract/late_line.hpp"
#include "contract/script_names.hpp"
#include "support/collected_log.hpp"
#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using test::LateCopy;
using test::LateHistory;
using test::LatePlay;

/// Scripts that no history plays. Never sent again, or part of others:
const std::set<std::string> not_played{
    "store/unmoved", "store/info", "sale/reread", "id/next", "server/end_entry",
    "lock/fair/hand_over", "lock/shared/settle", "lock/fair/waiters", "lock/fair/release",
    "lock/latch/look",
    // Of locks, by the id of a request; tests/lock/simulation strands them:
    "lock/limiter/give_back", "lock/mutex/pass", "lock/quorum/raise", "lock/quorum/renew",
    "lock/wait/report_waiters", "lock/semaphore/renew", "lock/shared/renew_read",
    // Of rare trouble, by the token of a recovery, a record or an id that they compare:
    "sale/drop_recovery", "sale/needs_recovery", "sale/recount", "sale/regroup", "sale/remove",
    "sale/take_again", "sale/take_out"};

/// Commands that src sends as repeatable, by name: `run({"SET", ..., repeatable)`.
std::set<std::string> repeatable_commands() {
  static const std::regex call{R"re(run\(\{"([A-Z]+)"[^;]*epeatable)re"};
  std::set<std::string> all;
  const std::filesystem::path src = test::source_path("src");
  for (const auto& entry : std::filesystem::recursive_directory_iterator{src}) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file{entry.path()};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    for (std::sregex_iterator at{text.begin(), text.end(), call}, end; at != end; ++at)
      all.insert((*at)[1]);
  }
  return all;
}

/// What was seen of all histories.
struct Walked {
  std::set<std::string> seen, repeatable, met, unsound;
  int inputs = 0;
};

class LateCopies : public testing::Test {
 protected:
  struct Played {
    std::vector<std::string> answers;
    std::map<std::string, std::size_t> repeatable, calls;
    bool was_held = false, has_arrived = false;
  };

  Played play(const LateHistory& history, std::optional<LateCopy> late) {
    test::PlainClient{server_.port()}.command({"FLUSHALL"});
    LatePlay play{server_.port(), std::move(late)};
    try {
      history.play(play);
    } catch (const std::exception& failure) {
      play.say("it threw", failure.what());
    }
    return {play.answers(), play.store().repeatable(), play.store().calls(),
            play.store().was_held(), play.store().has_arrived()};
  }

  /// Where two answers differ; empty: nowhere.
  static std::string difference(const Played& now, const Played& sound) {
    for (std::size_t i = 0; i < std::max(now.answers.size(), sound.answers.size()); ++i) {
      const auto at = [i](const Played& one) {
        return i < one.answers.size() ? one.answers[i] : std::string{"(nothing)"};
      };
      if (at(now) != at(sound))
        return fmt::format("answer {}: '{}' instead of '{}'", i, at(now), at(sound));
    }
    return {};
  }

  static bool plays_all() { return std::getenv("SLUICE_ALL_POINTS") != nullptr; }
  /// All, or the first and the last of each kind of call, at the first points and the last ones.
  static bool is_played(const LateHistory& history, std::size_t which, std::size_t count) {
    return plays_all() || which == 0 || (which + 1 == count && !history.takes_long);
  }
  static bool is_point(const LateHistory& history, std::size_t point) {
    const std::size_t first = history.takes_long ? 1 : 3;
    return plays_all() || point < first || point % 4 == 3;
  }

  void walk(const LateHistory& history, const std::string& call, std::size_t which) {
    LateCopy late{call, which};
    const Played sound = play(history, late);
    if (!sound.was_held) return;  // in the background, and not this time
    walked_.met.insert(call);
    const auto points = sound.answers.size();
    for (late.after = 0; late.after < points; ++late.after) {
      if (!is_point(history, late.after)) continue;
      const Played now = play(history, late);
      if (!now.has_arrived) return;  // the history is over
      ++walked_.inputs;
      const auto trouble = difference(now, sound);
      if (trouble.empty() || walked_.unsound.contains(call + history.name)) continue;
      // Each time, or the machine was slow.
      const LateCopy lost{call, which};
      const auto is_sound = [&](int) {
        return difference(play(history, late), play(history, lost)).empty();
      };
      if (std::ranges::any_of(std::views::iota(0, 3), is_sound)) continue;
      walked_.unsound.insert(call + history.name);
      ADD_FAILURE() << history.name << ": the first copy of " << call << " (" << which
                    << ") comes after " << late.after << " more points: " << trouble
                    << "; found by input " << walked_.inputs;
    }
  }

  void walk(const std::vector<LateHistory>& histories) {
    static const char* const only = std::getenv("SLUICE_HISTORY");
    for (const auto& history : histories) {
      if (only && std::string_view{only} != history.name) continue;
      const auto begun = std::chrono::steady_clock::now();
      const int inputs = walked_.inputs;
      const auto plain = play(history, std::nullopt);
      for (const auto& [call, count] : plain.calls) walked_.seen.insert(call);
      for (const auto& [call, count] : plain.repeatable) {
        walked_.repeatable.insert(call);
        for (std::size_t which = 0; which < count; ++which)
          if (is_played(history, which, count)) walk(history, call, which);
      }
      fmt::print("{}: {} inputs, {} ms\n", history.name, walked_.inputs - inputs,
                 (std::chrono::steady_clock::now() - begun) / std::chrono::milliseconds{1});
    }
  }

  test::CollectedLog log_;  // each line that is cut says so
  test::RedisServer server_;
  Walked walked_;
};

TEST_F(LateCopies, BC01_UndoNothingThatWasAcknowledged) {
  walk(test::late_histories());
  walk(test::late_histories_of_locks());
  walk(test::late_histories_of_sales());
  fmt::print("{} calls, {} of them repeatable, {} inputs, {} unsound\n", walked_.seen.size(),
             walked_.repeatable.size(), walked_.inputs, walked_.unsound.size());
  for (const auto& call : walked_.repeatable)
    EXPECT_TRUE(walked_.met.contains(call)) << call << " was never held";
  if (std::getenv("SLUICE_HISTORY")) return;
  for (const auto& name : test::all_scripts())
    EXPECT_TRUE(walked_.seen.contains(name) || not_played.contains(name))
        << "no history plays " << name;
  // PEXPIRE of a recovery's mark, which another one lengthens by 20 s at most, after five seconds.
  for (const auto& name : repeatable_commands())
    EXPECT_TRUE(walked_.repeatable.contains(name) || name == "PEXPIRE")
        << "no history plays " << name;
}

}  // namespace
}  // namespace sluice
