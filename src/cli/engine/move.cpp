// `sluice engine move`: all keys to another store, while programs run on it. See
// docs/decisions/0054-all-keys-move-to-another-store.md.
//
// Guarantee: the source is read alone. When it ends well, the target has what the source had when
//   writes were paused, each key compared as its type's own commands show it, with the time when
//   it ends. Killed at any moment and run again it ends as if it had not been killed; pauses that
//   it began end by themselves.
// Not guaranteed: that SWAPDB at the source is noticed.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/json.hpp"
#include "base/sip_hash.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/engine/commands.hpp"
#include "cli/engine/side.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Keys = std::span<const std::string>;

/// At the target until all keys are there. Its text is the source.
const std::string mark = "sluice-move:source";

constexpr std::size_t keys_a_batch = 100;
constexpr std::size_t small_tail = 200;  // of keys: writes wait for them
constexpr int most_vain_rounds = 5;
constexpr auto pause_length = "15000";  // ms; after that a killed move holds nothing up
constexpr auto renewal = 3s;
constexpr milliseconds clocks_differ = 2s;

/// One server has ended a key, and the other is about to.
bool is_over(const Content& content) {
  const auto now = std::chrono::floor<milliseconds>(system_clock().wall()).time_since_epoch();
  return content.ends_at >= 0 && milliseconds{content.ends_at} <= now + clocks_differ;
}

bool are_alike(const Content& one, const Content& other) {
  if (one == other) return true;
  return (!one.is_there() && is_over(other)) || (!other.is_there() && is_over(one));
}

/// Its sum over all keys is the digest of a store.
std::uint64_t digest_of(int database, const std::string& key, const Content& content) {
  if (!content.is_there()) return 0;
  SipHash hash{{0, 0}};
  hash.add(fmt::format("{} {} {} {} ", database, key.size(), content.type, content.ends_at));
  hash.add(key);
  hash.add(content.text);
  return hash.value();
}

template <class Each>
void in_batches(const std::vector<std::string>& keys, Each each) {
  for (std::size_t at = 0; at < keys.size(); at += keys_a_batch)
    each(Keys{keys}.subspan(at, std::min(keys_a_batch, keys.size() - at)));
}

[[noreturn]] void refuse_to_move(const std::string& why) { throw Error{Errc::bad_argument, why}; }

/// Threads: one.
class Move {
 public:
  Move(const EngineArgs& args, std::stop_token stop)
      : args_(args),
        stop_(std::move(stop)),
        source_(args.source, Side::Role::source),
        target_(args.target, Side::Role::target) {}
  ~Move() { unpause(); }
  Move(const Move&) = delete;
  Move& operator=(const Move&) = delete;

  /// Returns with writes paused at the source, unless that is still. False: keys were refused, and
  /// nothing is paused. Throws Error, also when it is stopped; then it may be run again.
  bool run();
  /// Keeps writes paused for some seconds more.
  void pause();
  void report() const;

 private:
  void check();
  std::set<int> databases();
  std::uint64_t gaps();
  void look_around(std::string_view what, std::int64_t count);
  template <class Each>
  void for_all_keys(Side& side, std::string_view what, Each each);
  template <class Each>
  void for_names(const std::set<std::string>& names, Each each);
  void copy(int database, Keys keys);
  void copy(const std::set<std::string>& names) {
    for_names(names, [this](int database, Keys keys) { copy(database, keys); });
  }
  void compare(int database, Keys keys);
  void compare_all();
  std::set<std::string> take_tail();
  void copy_tail();
  void sweep();
  void unpause() noexcept;
  bool try_to_switch(std::uint64_t gaps_before);

  const EngineArgs& args_;
  const std::stop_token stop_;
  Side source_, target_;
  std::vector<std::unique_ptr<Tail>> tails_;  // one of each master
  std::set<int> databases_;                   // that had keys at any time
  std::set<std::string> streams_;             // of which XGROUP, XACK and XSETID tell nothing
  std::set<std::string> again_;               // differ, or did
  std::map<std::pair<int, std::string>, std::string> refused_;  // with their databases, and why
  bool is_resumed_ = false;
  SteadyTime told_ = system_clock().steady(), paused_{}, renewed_{};
  milliseconds paused_for_{};
  std::int64_t copied_ = 0, compared_ = 0;
  std::uint64_t digest_ = 0, other_digest_ = 0;
  bool has_digest_ = false;
};

// --- before ---

void Move::check() {
  const auto marked = target_.in(0).run({"GET", mark}).get();
  is_resumed_ = !marked.is_null();
  if (is_resumed_ && marked.as_text() != source_.name())
    refuse_to_move(
        fmt::format("a move from {} to {} has not ended; if it is given up, empty the target, or "
                    "delete its key {}",
                    marked.as_text(), target_.name(), mark));
  if (!is_resumed_ && !args_.into_used && !target_.sizes().empty())
    refuse_to_move(fmt::format(
        "{} has keys already; --into-used keeps them, but for those that the source has as well",
        target_.name()));
  if (source_.in(0).run({"EXISTS", mark}).get().as_integer() != 0)
    refuse_to_move(fmt::format("a move to {} has not ended", source_.name()));
  databases();
  const auto functions = source_.master(0).run(Batch{}.add({"FUNCTION", "LIST"})).get().front();
  if (functions.is_aggregate() && !functions.as_items().empty())
    complain("functions are no keys and stay: FUNCTION DUMP and RESTORE take them");
}

/// Those of the source that have keys, or had some.
std::set<int> Move::databases() {
  for (const auto& [database, keys] : source_.sizes()) {
    databases_.insert(database);
    if (database != 0 && target_.is_cluster())
      refuse_to_move(
          fmt::format("database {} of {} has {} keys, and a cluster has database 0 alone", database,
                      source_.name(), keys));
  }
  if (databases_.size() > 1 && args_.into_used)
    refuse_to_move(
        "--into-used takes a source with one database: changed keys are told without theirs, and "
        "one of the target's own might be deleted");
  return databases_;
}

// --- meanwhile ---

std::uint64_t Move::gaps() {
  std::uint64_t gaps = 0;
  for (const auto& tail : tails_) gaps += tail->gaps();
  return gaps;
}

void Move::look_around(std::string_view what, std::int64_t count) {
  if (stop_.stop_requested()) throw Error{Errc::closed, "it was stopped"};
  const auto now = system_clock().steady();
  if (paused_ != SteadyTime{} && now - renewed_ > renewal) pause();
  if (now - told_ < 1s) return;
  told_ = now;
  complain("{}: {} keys", what, count);
}

template <class Each>
void Move::for_all_keys(Side& side, std::string_view what, Each each) {
  std::int64_t count = 0;
  for (const int database : databases())
    for (std::size_t master = 0; master < side.masters(); ++master) {
      std::string cursor = "0";
      do {
        const auto reply =
            side.master(master, database).run({"SCAN", cursor, "COUNT", "500"}).get();
        std::vector<std::string> keys;
        for (const auto& key : reply.as_items().at(1).as_items())
          if (key.as_text() != mark) keys.push_back(key.as_text());
        in_batches(keys, [&](Keys batch) {
          each(database, batch);
          look_around(what, count += std::ssize(batch));
        });
        cursor = reply.as_items().at(0).as_text();
      } while (cursor != "0");
    }
}

/// Keys that changed are told without their database.
template <class Each>
void Move::for_names(const std::set<std::string>& names, Each each) {
  for (const int database : databases())
    in_batches({names.begin(), names.end()}, [&](Keys batch) {
      each(database, batch);
      look_around("with those that changed meanwhile", copied_);
    });
}

/// As they are now; those that the source does not have, the target has no more.
void Move::copy(int database, Keys keys) {
  Batch reading, writing;
  for (const auto& key : keys)
    reading.add({"DUMP", key}).add({"PEXPIRETIME", key}).add({"XINFO", "GROUPS", key});
  const auto read = source_.in(database).run(std::move(reading)).get();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& dump = read[3 * i];
    if (!read[3 * i + 2].is_error()) streams_.insert(keys[i]);
    if (dump.is_error()) {
      writing.add({"TYPE", keys[i]});
    } else if (dump.is_null()) {
      writing.add({"UNLINK", keys[i]});
    } else {
      const auto ends = std::max<std::int64_t>(checked(read[3 * i + 1]).as_integer(), 0);
      writing.add({"RESTORE", keys[i], std::to_string(ends), dump.as_text(), "ABSTTL", "REPLACE"});
    }
  }
  const auto written = target_.in(database).run(std::move(writing)).get();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& refusal = read[3 * i].is_error() ? read[3 * i] : written[i];
    if (refusal.is_error())
      refused_[{database, keys[i]}] = refusal.as_text();
    else
      refused_.erase({database, keys[i]});
  }
  copied_ += std::ssize(keys);
}

void Move::compare(int database, Keys keys) {
  const auto here = source_.contents(database, keys);
  const auto there = target_.contents(database, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!are_alike(here[i], there[i])) again_.insert(keys[i]);
    digest_ += digest_of(database, keys[i], here[i]);
    other_digest_ += digest_of(database, keys[i], there[i]);
  }
  compared_ += std::ssize(keys);
}

void Move::compare_all() {
  digest_ = other_digest_ = 0;
  for_all_keys(source_, "compared", [this](int database, Keys keys) { compare(database, keys); });
}

std::set<std::string> Move::take_tail() {
  auto names = std::exchange(again_, {});
  for (const auto& tail : tails_) names.merge(tail->take());
  return names;
}

/// Until what changes while it is copied is little, or does not become less.
void Move::copy_tail() {
  auto least = std::numeric_limits<std::size_t>::max();
  for (int vain = 0; vain < most_vain_rounds;) {
    const auto names = take_tail();
    copy(names);
    if (names.size() <= small_tail) return;
    vain = names.size() < least ? 0 : vain + 1;
    least = std::min(least, names.size());
  }
  complain("keys change as fast as they are copied: the pause of writes takes as long as {} do",
           least);
}

/// Keys of the target that the source has no more, and of whose end we were not told.
void Move::sweep() {
  if (args_.into_used) return complain("keys that were deleted unseen stay at the target");
  for (const auto& [database, keys] : target_.sizes()) databases_.insert(database);
  for_all_keys(target_, "looked for at the source", [this](int database, Keys keys) {
    Batch asking, deleting;
    for (const auto& key : keys) asking.add({"EXISTS", key});
    const auto found = source_.in(database).run(std::move(asking)).get();
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (checked(found[i]).as_integer() == 0) deleting.add({"UNLINK", keys[i]});
    target_.in(database).run(std::move(deleting)).get();
  });
}

// --- the switch ---

void Move::pause() {
  renewed_ = system_clock().steady();
  if (paused_ == SteadyTime{}) paused_ = renewed_;
  for (std::size_t master = 0; master < source_.masters(); ++master)
    source_.master(master).run({"CLIENT", "PAUSE", pause_length, "WRITE"}).get();
}

void Move::unpause() noexcept {
  if (std::exchange(paused_, SteadyTime{}) == SteadyTime{}) return;
  for (std::size_t master = 0; master < source_.masters(); ++master) try {
      source_.master(master).run({"CLIENT", "UNPAUSE"}).get();
    } catch (const std::exception&) {  // it ends by itself
    }
}

/// False: any key may have changed, or some were refused. Ends with a round in which nothing was
/// late: a pause may be ended by another client, and the engine lets keys expire in it.
bool Move::try_to_switch(std::uint64_t gaps_before) {
  const auto begun = system_clock().steady();
  const bool compares_all = args_.is_still || args_.compares_all;
  if (!args_.is_still) pause();
  auto late = args_.is_still ? std::set<std::string>{} : streams_;
  for (int round = 0; round < most_vain_rounds; ++round) {
    for (const auto& tail : tails_) tail->settle();
    late.merge(take_tail());
    if (gaps() != gaps_before || !refused_.empty()) return unpause(), false;
    if (round > 0 && late.empty()) {
      target_.in(0).run({"DEL", mark}).get();
      paused_for_ = std::chrono::ceil<milliseconds>(system_clock().steady() - begun);
      has_digest_ = compares_all && round == 1 && digest_ == other_digest_;
      return true;
    }
    copy(late);
    if (compares_all && round == 0)
      compare_all();
    else
      for_names(late, [this](int database, Keys keys) { compare(database, keys); });
    late.clear();
  }
  throw Error{Errc::corrupt,
              fmt::format("keys change again and again though writes are paused: does a program "
                          "write, or end the pause? {} differ{}",
                          again_.size(), again_.empty() ? "" : ", as '" + *again_.begin() + "'")};
}

bool Move::run() {
  check();
  if (!args_.is_still) {
    pause();  // that it may is known before hours of copying
    unpause();
    for (std::size_t master = 0; master < source_.masters(); ++master)
      tails_.push_back(std::make_unique<Tail>(source_.master(master)));
  }
  target_.in(0).run({"SET", mark, source_.name()}).get();
  for (bool is_first = true;; is_first = false) {
    const auto before = gaps();
    if (is_resumed_ || !is_first) sweep();
    for_all_keys(source_, "copied", [this](int database, Keys keys) { copy(database, keys); });
    copy_tail();
    if (refused_.empty() && !args_.is_still) compare_all();
    copy_tail();
    if (refused_.empty() && try_to_switch(before)) return true;
    if (!refused_.empty()) return false;
    complain("a connection was lost, or all keys were deleted: once more");
  }
}

void Move::report() const {
  auto refused = Json::array();
  for (const auto& [key, why] : refused_) {
    complain("refused: '{}' of database {}: {}", key.second, key.first, why);
    refused.add(Json::object({{"database", key.first}, {"key", key.second}, {"why", why}}));
  }
  const auto digest = has_digest_ ? fmt::format("{:016x}", digest_) : "";
  if (args_.json) {
    put("{}\n", Json::object({{"moved", refused_.empty()},
                              {"copied", copied_},
                              {"compared", compared_},
                              {"refused", refused},
                              {"paused_ms", paused_for_.count()},
                              {"digest", digest}})
                    .text());
  } else {
    put("{}: {} keys copied, {} compared\n",
        refused_.empty() ? "moved" : "programs stay where they are", copied_, compared_);
    if (paused_ != SteadyTime{}) put("writes were paused for {} ms\n", paused_for_.count());
    if (has_digest_) put("digest of both: {}\n", digest);
  }
  flush_output();
}

int move_keys(const EngineArgs& args) {
  const StopOnSignal signals;  // before any other thread
  Move move{args, signals.token()};
  try {
    const bool has_moved = move.run();
    move.report();
    if (!has_moved) return exit_bad_data;
  } catch (const Error&) {
    if (!signals.token().stop_requested()) throw;
    complain("it was stopped: run it again, and it goes on");
    return exit_refused;
  }
  if (args.is_still || args.hold.count() == 0) return exit_ok;
  complain("writes at the source stay paused for {} ms, or until INT or TERM", args.hold.count());
  const auto until = system_clock().steady() + args.hold;
  for (auto now = until - args.hold; now < until; now = system_clock().steady()) {
    move.pause();
    if (!signals.sleep_for(std::min<std::chrono::nanoseconds>(until - now, renewal))) break;
  }
  return exit_ok;
}

}  // namespace

Command move_command(EngineArgs& args) {
  return {
      .name = "move",
      .summary = "Copy all keys of a store to another, while programs run on it",
      .arguments = {{"SOURCE", "The URL of the store that has the keys", into(args.source)},
                    {"TARGET", "The URL of the store to be", into(args.target)}},
      .options = {{"--hold", "TIME", "Keep writes at the source paused so long when all is done",
                   into(args.hold)},
                  {"--still", "", "No program writes at the source: watch no changes, pause none",
                   into(args.is_still)},
                  {"--into-used", "", "The target may have keys of its own", into(args.into_used)},
                  {"--compare-paused", "", "Compare all keys once more while writes are paused",
                   into(args.compares_all)}},
      .details =
          "Programs are pointed to the target while --hold keeps writes paused. Killed or "
          "interrupted before, run it again, and it goes on. Keys that the target refuses "
          "are named, and it ends with 65 before it pauses anything.",
      .action = [&args] { return move_keys(args); }};
}

}  // namespace sluice::cli
