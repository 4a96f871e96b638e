#include "cli/engine/move.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/sip_hash.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// At the target until all keys are there. Its text is the source.
const std::string mark = "sluice-move:source";

constexpr std::string_view keys_a_scan = "500";
constexpr std::size_t keys_a_batch = 100;
constexpr std::size_t small_tail = 200;  // of keys: writes wait for them
constexpr int most_vain_rounds = 5;
constexpr auto pause_length = 15s;  // after that a killed move holds nothing up
constexpr auto told_each = 1s;
constexpr milliseconds clocks_differ = 2s;

/// Of a key that one server has ended, and the other is about to.
bool is_over(const Content& content) {
  const auto now = std::chrono::time_point_cast<milliseconds>(system_clock().wall());
  return content.ends_at >= 0 &&
         milliseconds{content.ends_at} <= now.time_since_epoch() + clocks_differ;
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
    each(std::span{keys}.subspan(at, std::min(keys_a_batch, keys.size() - at)));
}

}  // namespace

Move::Move(MoveOptions options)
    : options_(std::move(options)),
      source_(options_.source, Side::Role::source),
      target_(options_.target, Side::Role::target) {}

Move::~Move() { unpause(); }

std::string Move::digest() const { return has_digest_ ? fmt::format("{:016x}", digest_) : ""; }

// --- before ---

void Move::check_target() {
  const auto marked = target_.in(0).run({"GET", mark}).get();
  is_resumed_ = !marked.is_null();
  if (is_resumed_ && marked.as_text() != source_.name())
    throw Error{Errc::bad_argument,
                fmt::format("a move from {} to {} has not ended; if it is given up, empty the "
                            "target, or delete its key {}",
                            marked.as_text(), target_.name(), mark)};
  if (!is_resumed_ && !options_.into_used && !target_.sizes().empty())
    throw Error{Errc::bad_argument,
                fmt::format("{} has keys already; --into-used keeps them, but for those that the "
                            "source has as well",
                            target_.name())};
}

void Move::check_source() {
  if (source_.in(0).run({"EXISTS", mark}).get().as_integer() != 0)
    throw Error{Errc::bad_argument, fmt::format("a move to {} has not ended", source_.name())};
  databases();
  Batch batch;
  batch.add({"FUNCTION", "LIST"});
  const auto functions = source_.master(0).run(std::move(batch)).get().front();
  if (functions.is_aggregate() && !functions.as_items().empty())
    options_.tell("functions are no keys and stay: FUNCTION DUMP and RESTORE take them");
}

/// Those of the source that have keys, or had some.
std::set<int> Move::databases() {
  for (const auto& [database, keys] : source_.sizes()) {
    databases_.insert(database);
    if (database != 0 && target_.is_cluster())
      throw Error{Errc::bad_argument,
                  fmt::format("database {} of {} has {} keys, and a cluster has database 0 alone",
                              database, source_.name(), keys)};
  }
  if (databases_.size() > 1 && options_.into_used)
    throw Error{Errc::bad_argument,
                "--into-used takes a source with one database: changed keys are told without "
                "theirs, and one of the target's own might be deleted"};
  return databases_;
}

// --- meanwhile ---

std::uint64_t Move::gaps() {
  std::uint64_t gaps = 0;
  for (const auto& tail : tails_) gaps += tail->gaps();
  return gaps;
}

void Move::look_around(std::string_view what, std::int64_t count) {
  if (options_.stop.stop_requested()) throw Error{Errc::closed, "it was stopped"};
  const auto now = system_clock().steady();
  if (paused_ != SteadyTime{} && now - renewed_ > renewal) pause();
  if (now - told_ < told_each) return;
  told_ = now;
  options_.tell(fmt::format("{}: {} keys", what, count));
}

void Move::for_all_keys(Side& side, std::string_view what,
                        const std::function<void(int, Keys)>& each) {
  std::int64_t count = 0;
  for (const int database : databases())
    for (std::size_t master = 0; master < side.masters(); ++master) {
      std::string cursor = "0";
      do {
        const auto reply =
            side.master(master, database).run({"SCAN", cursor, "COUNT", keys_a_scan}).get();
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

/// As they are now; those that the source does not have, the target has no more.
void Move::copy(int database, Keys keys) {
  Batch reading;
  for (const auto& key : keys)
    reading.add({"DUMP", key}).add({"PEXPIRETIME", key}).add({"XINFO", "GROUPS", key});
  const auto read = source_.in(database).run(std::move(reading)).get();
  Batch writing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& dump = read[3 * i];
    if (dump.is_error()) {
      writing.add({"TYPE", keys[i]});
    } else if (dump.is_null()) {
      writing.add({"UNLINK", keys[i]});
    } else {
      const auto ends = std::max<std::int64_t>(checked(read[3 * i + 1]).as_integer(), 0);
      writing.add({"RESTORE", keys[i], std::to_string(ends), dump.as_text(), "ABSTTL", "REPLACE"});
      const auto& groups = read[3 * i + 2];  // an error: it is no stream
      if (groups.is_aggregate() && !groups.as_items().empty()) groups_.insert(keys[i]);
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

/// Keys that changed are told without their database.
void Move::for_names(const std::set<std::string>& names,
                     const std::function<void(int, Keys)>& each) {
  const std::vector<std::string> keys{names.begin(), names.end()};
  for (const int database : databases())
    in_batches(keys, [&](Keys batch) {
      each(database, batch);
      look_around("what changed meanwhile", copied_);
    });
}

std::set<std::string> Move::take_tail() {
  auto names = std::exchange(again_, {});
  for (const auto& tail : tails_) names.merge(tail->take());
  names.erase(mark);
  return names;
}

/// Until what changes while it is copied is little, or does not become less.
void Move::copy_tail() {
  auto least = std::numeric_limits<std::size_t>::max();
  for (int vain = 0; vain < most_vain_rounds;) {
    const auto names = take_tail();
    for_names(names, [this](int database, Keys keys) { copy(database, keys); });
    if (names.size() <= small_tail) return;
    vain = names.size() < least ? 0 : vain + 1;
    least = std::min(least, names.size());
  }
  options_.tell(
      fmt::format("keys change as fast as they are copied, {} at a time: the pause of "
                  "writes takes as long as that",
                  least));
}

void Move::compare_all() {
  digest_ = other_digest_ = 0;
  for_all_keys(source_, "compared", [this](int database, Keys keys) { compare(database, keys); });
}

/// Keys of the target that the source has no more, and of whose end we were not told.
void Move::sweep() {
  if (options_.into_used)
    return options_.tell("keys that were deleted at the source unseen stay at the target");
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
  const auto length = std::to_string(milliseconds{pause_length}.count());
  for (std::size_t master = 0; master < source_.masters(); ++master)
    source_.master(master).run({"CLIENT", "PAUSE", length, "WRITE"}).get();
}

void Move::unpause() noexcept {
  if (std::exchange(paused_, SteadyTime{}) == SteadyTime{}) return;
  for (std::size_t master = 0; master < source_.masters(); ++master) try {
      source_.master(master).run({"CLIENT", "UNPAUSE"}).get();
    } catch (const std::exception&) {  // it ends by itself
    }
}

/// False: any key may have changed.
bool Move::try_to_switch(std::uint64_t gaps_before) {
  const auto begun = system_clock().steady();
  if (!options_.is_still) pause();
  for (const auto& tail : tails_) tail->settle();
  auto names = take_tail();
  if (!options_.is_still) names.insert(groups_.begin(), groups_.end());
  for_names(names, [this](int database, Keys keys) { copy(database, keys); });
  if (options_.is_still || options_.compares_all) {
    compare_all();
    has_digest_ = digest_ == other_digest_;
  } else {
    for_names(names, [this](int database, Keys keys) { compare(database, keys); });
  }
  if (gaps() != gaps_before) return unpause(), false;
  if (!refused_.empty()) return unpause(), true;
  if (!again_.empty())
    throw Error{Errc::corrupt,
                fmt::format("{} keys differ though none was written: {}{}", again_.size(),
                            *again_.begin(), options_.is_still ? "; does no program write?" : "")};
  target_.in(0).run({"DEL", mark}).get();
  paused_for_ = std::chrono::ceil<milliseconds>(system_clock().steady() - begun);
  return true;
}

bool Move::run() {
  check_target();
  check_source();
  if (!options_.is_still) {
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
    if (!refused_.empty()) return false;
    if (!options_.is_still) compare_all();
    copy_tail();
    if (!refused_.empty()) return false;
    if (try_to_switch(before)) return refused_.empty();
    options_.tell("a connection was lost, or all keys were deleted: once more");
  }
}

}  // namespace sluice::cli
