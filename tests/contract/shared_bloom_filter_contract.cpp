// What SharedBloomFilter promises on every Store.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "contract/stores.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;

class SharedBloomContract : public test::StoreContract {
 protected:
  SharedBloomFilter made(SharedBloomSize size, std::string_view what = "filter") {
    SharedBloomFilter filter{store(), name(what)};
    EXPECT_TRUE(filter.try_create(size).get());
    return filter;
  }
  /// All keys that the filters of these names may have.
  std::vector<std::string> keys(std::initializer_list<std::string_view> filters = {"filter"}) {
    std::vector<std::string> there;
    for (const auto filter : filters)
      for (const char* const suffix : {"", ":config", ":link:1", ":link:2", ":link:3", ":link:4",
                                       ":next", ":next:config", ":next:link:1"})
        if (auto key = name(filter) + suffix; store().run({"EXISTS", key}).get().as_integer() == 1)
          there.push_back(std::move(key));
    return there;
  }
};
SLUICE_EVERY_STORE(SharedBloomContract);
SLUICE_SHARDED_STORE(SharedBloomContract);

constexpr SharedBloomSize small{.expected = 100, .error_rate = 0.03};
constexpr SharedBloomSize chain{.expected = 100, .error_rate = 0.01, .scalable = true};

std::vector<std::string> names(const std::string& prefix, std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
  return all;
}

std::size_t count_true(const std::vector<bool>& answers) {
  return static_cast<std::size_t>(std::count(answers.begin(), answers.end(), true));
}

bool has_all(SharedBloomFilter& filter, const std::vector<std::string>& keys) {
  return count_true(filter.contains(bloom_keys(keys)).get()) == keys.size();
}

template <class Call>
Errc error_of(Call call) {
  try {
    call();
    return Errc{};
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::none) << failure.message();
    return failure.errc();
  }
}

TEST_P(SharedBloomContract, IsCreatedOnceAndKnowsWhatWasAdded) {
  SharedBloomFilter filter{store(), name("filter")};
  EXPECT_FALSE(filter.exists().get());
  EXPECT_TRUE(filter.try_create(small).get());
  EXPECT_FALSE(filter.try_create({.expected = 5}).get());
  EXPECT_TRUE(filter.exists().get());
  EXPECT_FALSE(filter.contains("anna").get());
  EXPECT_TRUE(filter.add("anna").get());
  EXPECT_FALSE(filter.add("anna").get());
  EXPECT_TRUE(filter.contains("anna").get());
  EXPECT_TRUE(filter.add(7).get());
  EXPECT_TRUE(filter.contains("7").get()) << "a number is its decimal text";
  EXPECT_TRUE(filter.add("").get());
  EXPECT_TRUE(filter.contains("").get());
}

TEST_P(SharedBloomContract, EnsureCreatedRefusesAnotherSize) {
  SharedBloomFilter filter{store(), name("filter")};
  filter.ensure_created(small).get();
  filter.ensure_created(small).get();
  EXPECT_EQ(error_of([&] { filter.ensure_created({.expected = 200}).get(); }),
            Errc::config_mismatch);
  EXPECT_EQ(error_of([&] { filter.ensure_created(chain).get(); }), Errc::config_mismatch);
}

TEST_P(SharedBloomContract, OneThatIsNotThereSaysSo) {
  SharedBloomFilter filter{store(), name("filter")};
  EXPECT_EQ(error_of([&] { (void)filter.add("a").get(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)filter.contains("a").get(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)filter.info().get(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)filter.local_copy().get(); }), Errc::closed);
  EXPECT_FALSE(filter.remove().get());
  EXPECT_FALSE(filter.expire(1s).get());
  EXPECT_FALSE(filter.persist().get());
  EXPECT_FALSE(filter.rename(name("other")).get());
  EXPECT_TRUE(keys({"filter", "other"}).empty()) << "no question has left anything";
}

TEST_P(SharedBloomContract, ABulkHasAnAnswerForEachKey) {
  auto filter = made({.expected = 10'000, .error_rate = 0.0001});
  EXPECT_TRUE(filter.add(std::span<const BloomKey>{}).get().empty());
  const std::string_view first[] = {"a", "b", "a", "c"};
  EXPECT_EQ(filter.add(first).get(), (std::vector<bool>{true, true, false, true}));
  const std::string_view asked[] = {"c", "x", "a"};
  EXPECT_EQ(filter.contains(asked).get(), (std::vector<bool>{true, false, true}));

  const auto many = names("key:", 5000);  // several scripts in one round trip
  const auto added = filter.add(bloom_keys(many)).get();
  ASSERT_EQ(added.size(), many.size());
  EXPECT_GT(count_true(added), 4990U);
  EXPECT_TRUE(has_all(filter, many));
  const auto absent = filter.contains(bloom_keys(names("absent:", 5000))).get();
  EXPECT_LT(count_true(absent), 10U);
}

TEST_P(SharedBloomContract, ABulkOfALargeFilterIsSeveralScripts) {
  auto filter = made({.expected = 8'000'000, .error_rate = 0.01});
  const auto many = names("key:", 1600);
  (void)filter.add(bloom_keys(many)).get();
  EXPECT_TRUE(has_all(filter, many));
  EXPECT_EQ(count_true(filter.contains(bloom_keys(names("absent:", 1600))).get()), 0U);
}

TEST_P(SharedBloomContract, KeysOfNoBytesAndOfTenMegabytes) {
  auto filter = made(small);
  const std::string large(10 << 20, 'x');
  EXPECT_TRUE(filter.add(large).get());
  EXPECT_TRUE(filter.contains(large).get());
  EXPECT_FALSE(filter.contains(std::string_view{large}.substr(1)).get());
}

TEST_P(SharedBloomContract, NoFalseNegativeAndTheOrderedErrorRate) {
  auto filter = made({.expected = 2000, .error_rate = 0.05});
  const auto mine = names("mine:", 2000);
  (void)filter.add(bloom_keys(mine)).get();
  EXPECT_TRUE(has_all(filter, mine));
  const double wrong =
      static_cast<double>(count_true(filter.contains(bloom_keys(names("other:", 10'000))).get()));
  const double expected = 10'000 * 0.05;
  EXPECT_NEAR(wrong, expected, 3 * std::sqrt(expected * 0.95) + 60)
      << "3 sigma of the sample, and of how full the filter came out";
  const auto info = filter.info().get();
  EXPECT_NEAR(static_cast<double>(info.keys), 2000, 60);
  EXPECT_NEAR(info.error_rate_now, 0.05, 0.007);
  EXPECT_EQ(info.expected, 2000U);
  EXPECT_EQ(info.error_rate, 0.05);
  EXPECT_EQ(info.links.size(), 1U);
  EXPECT_FALSE(info.scalable);
  EXPECT_FALSE(info.left.has_value());
}

TEST_P(SharedBloomContract, AChainGrowsAndKeepsItsErrorRate) {
  auto filter = made(chain);
  const auto mine = names("mine:", 3000);
  for (std::size_t at = 0; at < mine.size(); at += 600)
    (void)filter
        .add(bloom_keys(std::vector(mine.begin() + static_cast<std::ptrdiff_t>(at),
                                    mine.begin() + static_cast<std::ptrdiff_t>(at) + 600)))
        .get();
  EXPECT_TRUE(has_all(filter, mine));
  const auto info = filter.info().get();
  EXPECT_TRUE(info.scalable);
  EXPECT_EQ(info.links.size(), 5U) << "100 + 200 + 400 + 800 + 1600";
  EXPECT_NEAR(static_cast<double>(info.keys), 3000, 120);
  EXPECT_LT(info.error_rate_now, 0.01);
  EXPECT_LT(count_true(filter.contains(bloom_keys(names("other:", 10'000))).get()), 150U);
  EXPECT_EQ(count_true(filter.add(bloom_keys(mine)).get()), 0U) << "no link takes them again";

  SharedBloomFilter later{store(), name("filter")};
  EXPECT_TRUE(later.contains(mine.back()).get());
  EXPECT_TRUE(filter.remove().get());
  EXPECT_TRUE(keys().empty());
}

TEST_P(SharedBloomContract, BitsBeyondTheLargestLinkAreAChain) {
  auto filter = made({.expected = 5000, .error_rate = 0.01, .largest_link = 16'384});
  const auto mine = names("mine:", 5000);
  (void)filter.add(bloom_keys(mine)).get();
  EXPECT_TRUE(has_all(filter, mine));
  const auto info = filter.info().get();
  EXPECT_GE(info.links.size(), 3U);
  for (const auto& link : info.links) EXPECT_LE(link.bits, 16'384U);
  EXPECT_LT(info.error_rate_now, 0.011);
}

TEST_P(SharedBloomContract, AChangedConfigIsFollowed) {
  auto filter = made(small);
  (void)filter.add("before").get();
  SharedBloomFilter other{store(), name("filter")};
  EXPECT_TRUE(other.remove().get());
  EXPECT_TRUE(other.try_create({.expected = 5000, .error_rate = 0.001}).get());
  EXPECT_TRUE(other.add("after").get());
  EXPECT_TRUE(filter.contains("after").get());
  EXPECT_FALSE(filter.contains("before").get());
  EXPECT_TRUE(filter.add("more").get());
  EXPECT_TRUE(other.contains("more").get());
  other.remove().get();
  EXPECT_EQ(error_of([&] { (void)filter.contains("after").get(); }), Errc::closed);
}

TEST_P(SharedBloomContract, MergeAddsTheKeysOfFiltersOfTheSameSize) {
  auto filter = made(small, "one");
  auto two = made(small, "two");
  auto three = made(small, "three");
  auto large = made({.expected = 500}, "large");
  filter.expire(1h).get();
  (void)filter.add("1").get();
  (void)two.add("2").get();
  (void)three.add("3").get();
  filter.merge({name("two"), name("three"), name("one")}).get();
  for (const char* const key : {"1", "2", "3"}) EXPECT_TRUE(filter.contains(key).get()) << key;
  EXPECT_FALSE(two.contains("3").get());
  EXPECT_GT(store().run({"PTTL", name("one")}).get().as_integer(), 0) << "BITOP forgets the TTL";
  EXPECT_EQ(error_of([&] { filter.merge({name("large")}).get(); }), Errc::config_mismatch);
  EXPECT_EQ(error_of([&] { filter.merge({name("missing")}).get(); }), Errc::closed);
}

TEST_P(SharedBloomContract, ChainsMergeLinkByLink) {
  auto filter = made(chain, "one");
  auto two = made(chain, "two");
  const auto mine = names("mine:", 250);
  const auto theirs = names("theirs:", 50);
  (void)filter.add(bloom_keys(mine)).get();
  (void)two.add(bloom_keys(theirs)).get();
  filter.merge({name("two")}).get();
  EXPECT_TRUE(has_all(filter, mine));
  EXPECT_TRUE(has_all(filter, theirs));
  EXPECT_EQ(error_of([&] { two.merge({name("one")}).get(); }), Errc::config_mismatch)
      << "it has fewer links";
}

TEST_P(SharedBloomContract, ExpireRenameAndRemoveTakeAllKeys) {
  auto filter = made(chain);
  EXPECT_TRUE(filter.expire(1h).get());
  const auto mine = names("mine:", 250);
  (void)filter.add(bloom_keys(mine)).get();
  const auto all = keys();
  EXPECT_EQ(all.size(), 3U) << "config and two links";
  for (const auto& key : all) EXPECT_GT(store().run({"PTTL", key}).get().as_integer(), 0) << key;
  EXPECT_GT(filter.info().get().left.value_or(0ms), 30min);
  EXPECT_TRUE(filter.persist().get());
  for (const auto& key : all) EXPECT_EQ(store().run({"PTTL", key}).get().as_integer(), -1) << key;

  auto occupied = made(small, "occupied");
  EXPECT_EQ(error_of([&] { (void)filter.rename(name("occupied")).get(); }), Errc::in_use);
  EXPECT_TRUE(filter.rename(name("other")).get());
  SharedBloomFilter other{store(), name("other")};
  EXPECT_TRUE(has_all(other, mine));
  EXPECT_EQ(error_of([&] { (void)filter.contains("a").get(); }), Errc::closed);
  EXPECT_TRUE(other.remove().get());
  EXPECT_TRUE(keys({"filter", "other"}).empty());
}

TEST_P(SharedBloomContract, AnEmptyFilterExpiresWhole) {
  auto filter = made(small);
  filter.expire(1h).get();
  (void)filter.add("a").get();  // the first bit must not make a key that lasts
  EXPECT_GT(store().run({"PTTL", name("filter")}).get().as_integer(), 0);
}

TEST_P(SharedBloomContract, ARebuildTakesThePlaceInOneStepWhileOthersReadAndAdd) {
  auto filter = made(small);
  const auto kept = names("kept:", 80);
  (void)filter.add(bloom_keys(kept)).get();
  (void)filter.add("forgotten").get();
  filter.expire(1h).get();
  std::atomic<int> wrong{0};
  std::atomic<int> asked{0};
  std::atomic<int> begun{0};
  std::atomic<int> added{0};
  const auto key_of = [](int number) { return "added:" + std::to_string(number); };
  std::jthread reader{[&](const std::stop_token& stop) {
    SharedBloomFilter mine{store(), name("filter")};
    for (std::size_t i = 0; !stop.stop_requested(); i = (i + 1) % kept.size()) {
      if (!mine.contains(kept[i]).get()) ++wrong;
      ++asked;
    }
  }};
  std::jthread writer{[&](const std::stop_token& stop) {
    SharedBloomFilter mine{store(), name("filter")};
    while (!stop.stop_requested()) {
      const std::string key = key_of(begun++);
      (void)mine.add(key).get();
      ++added;
    }
  }};
  for (std::uint64_t round = 1; round <= 3; ++round) {
    auto rebuild = filter.try_rebuild({.expected = 30'000 * round, .error_rate = 0.001}).get();
    ASSERT_TRUE(rebuild.has_value());
    const int first = begun;  // whose add begins after the rebuild
    EXPECT_FALSE(filter.try_rebuild(small).get().has_value()) << "one at a time";
    EXPECT_TRUE(filter.info().get().rebuilding);
    rebuild->add(bloom_keys(kept)).get();
    const int before = asked;
    EXPECT_TRUE(comes_true([&] { return asked > before + 20 && added > first + 20; }));
    rebuild->finish().get();
    std::vector<std::string> meanwhile;
    for (int i = first; i < added; ++i) meanwhile.push_back(key_of(i));
    EXPECT_TRUE(has_all(filter, meanwhile));
  }
  for (auto* const thread : {&reader, &writer}) {
    thread->request_stop();
    thread->join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(has_all(filter, kept));
  EXPECT_FALSE(filter.contains("forgotten").get());
  const auto info = filter.info().get();
  EXPECT_EQ(info.expected, 90'000U);
  EXPECT_FALSE(info.rebuilding);
  EXPECT_GT(info.left.value_or(0ms), 30min) << "the time to live stays";
  EXPECT_EQ(keys().size(), 2U);
}

TEST_P(SharedBloomContract, WhatIsAddedDuringARebuildIsInTheNewFilter) {
  auto filter = made(small);
  SharedBloomFilter other{store(), name("filter")};
  (void)other.add("before").get();  // so that it knows the definition without a rebuild
  auto rebuild = filter.try_rebuild(chain).get();
  ASSERT_TRUE(rebuild.has_value());
  EXPECT_TRUE(other.add("during").get());
  const auto many = names("many:", 150);
  (void)other.add(bloom_keys(many)).get();
  rebuild->finish().get();
  EXPECT_TRUE(other.contains("during").get());
  EXPECT_TRUE(has_all(other, many));
  EXPECT_EQ(error_of([&] { rebuild->add(bloom_keys(many)).get(); }), Errc::closed);
}

TEST_P(SharedBloomContract, ARebuildThatIsDroppedLeavesNothing) {
  auto filter = made(small);
  {
    auto rebuild = filter.try_rebuild(small).get();
    ASSERT_TRUE(rebuild.has_value());
    rebuild->add(bloom_keys(names("new:", 10))).get();
  }
  EXPECT_TRUE(comes_true([&] { return keys().size() == 2; })) << "the config and bits";
  EXPECT_TRUE(filter.add("a").get());
  EXPECT_TRUE(filter.try_rebuild(small).get().has_value());
}

TEST_P(SharedBloomContract, ARebuildWhoseProcessDiedEndsByItself) {
  auto filter = made(small);
  auto rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  EXPECT_TRUE(filter.add("a").get());  // to both
  const std::string next = name("filter") + ":next";
  store().run({"DEL", next, next + ":config"}).get();  // as when its lease is over
  EXPECT_TRUE(filter.add("b").get());
  EXPECT_TRUE(filter.contains("b").get());
  EXPECT_TRUE(store().run({"HGET", name("filter") + ":config", "sluice:next"}).get().is_null());
  EXPECT_EQ(error_of([&] { rebuild->finish().get(); }), Errc::closed);
  EXPECT_TRUE(filter.contains("a").get());
}

TEST_P(SharedBloomContract, ARebuildNeedsNoFilterBefore) {
  SharedBloomFilter filter{store(), name("filter")};
  auto rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  rebuild->add(bloom_keys(names("a", 1))).get();
  rebuild->finish().get();
  EXPECT_TRUE(filter.contains("a0").get());
}

TEST_P(SharedBloomContract, ARebuildOfAFilterThatEndsMeanwhileIsGivenUp) {
  for (const std::string_view what : {"filter", "other"}) {
    auto filter = made(what == "filter" ? small : chain, what);
    auto rebuild = filter.try_rebuild(small).get();
    ASSERT_TRUE(rebuild.has_value());
    rebuild->add(bloom_keys(names("new:", 10))).get();
    store().run({"DEL", name(what), name(what) + ":config"}).get();  // as when its time is over
    try {
      rebuild->finish().get();
      ADD_FAILURE() << "what was to end would be there for ever";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::closed);
      EXPECT_TRUE(error.message().contains('"' + name(what) + '"')) << error.message();
    }
    EXPECT_FALSE(filter.exists().get());
  }
}

TEST_P(SharedBloomContract, ARebuildOfAFilterThatCameAndWentMeanwhileIsGivenUp) {
  SharedBloomFilter filter{store(), name("filter")};
  auto rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  ASSERT_TRUE(filter.try_create(small).get());
  (void)filter.add("a").get();
  store().run({"DEL", name("filter"), name("filter") + ":config"}).get();  // its time is over
  EXPECT_EQ(error_of([&] { rebuild->finish().get(); }), Errc::closed);
  EXPECT_FALSE(filter.exists().get());

  rebuild.reset();
  ASSERT_TRUE(comes_true([&] { return keys().empty(); }));
  rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(filter.try_create(small).get());
  (void)filter.add("b").get();
  rebuild->finish().get();
  EXPECT_TRUE(filter.contains("b").get());
  auto next = filter.try_rebuild(small).get();  // and of one that was made by a rebuild
  ASSERT_TRUE(next.has_value());
  next->finish().get();
  EXPECT_FALSE(filter.contains("b").get());
}

TEST_P(SharedBloomContract, NoneIsRenamedDuringItsRebuild) {
  auto filter = made(small);
  {
    auto rebuild = filter.try_rebuild(small).get();
    ASSERT_TRUE(rebuild.has_value());
    EXPECT_EQ(error_of([&] { (void)filter.rename(name("other")).get(); }), Errc::in_use);
    (void)filter.add("a").get();
    rebuild->finish().get();
  }
  EXPECT_TRUE(filter.contains("a").get());
  auto dead = filter.try_rebuild(small).get();
  ASSERT_TRUE(dead.has_value());
  const std::string next = name("filter") + ":next";
  store().run({"DEL", next, next + ":config"}).get();  // as when its lease is over
  EXPECT_TRUE(filter.rename(name("other")).get());
}

TEST_P(SharedBloomContract, ALocalCopyKnowsAtOnceWhatIsAdded) {
  auto filter = made(small);
  (void)filter.add("before").get();
  const auto copy = filter.local_copy({.refresh = 24h}).get();
  EXPECT_TRUE(copy.contains("before"));
  EXPECT_FALSE(copy.contains("after"));
  SharedBloomFilter other{store(), name("filter")};
  (void)other.add("after").get();
  const std::string_view bulk[] = {"two", "three"};
  (void)other.add(bulk).get();
  EXPECT_TRUE(comes_true(
      [&] { return copy.contains("after") && copy.contains("two") && copy.contains("three"); }));
  EXPECT_EQ(copy.bytes(), 96U);
  EXPECT_GE(copy.age(), 0ms);
}

TEST_P(SharedBloomContract, ALocalCopyFollowsARebuildAndARemoval) {
  auto filter = made(small);
  (void)filter.add("old").get();
  const auto copy = filter.local_copy({.refresh = 24h}).get();
  auto rebuild = filter.try_rebuild({.expected = 5000}).get();
  rebuild->add(bloom_keys(names("new", 1))).get();
  rebuild->finish().get();
  EXPECT_TRUE(comes_true([&] { return copy.contains("new0") && !copy.contains("old"); }));
  EXPECT_TRUE(filter.remove().get());
  EXPECT_TRUE(comes_true([&] {
    try {
      (void)copy.contains("new0");
      return false;
    } catch (const Error& failure) {
      return failure.errc() == Errc::closed;
    }
  }));
}

TEST_P(SharedBloomContract, ALocalCopyIsReadAnewNowAndThen) {
  SharedBloomFilter silent{store(), name("filter"), {.announce = false}};
  ASSERT_TRUE(silent.try_create(chain).get());
  auto copy = silent.local_copy({.refresh = 10ms}).get();
  const auto mine = names("mine:", 250);
  (void)silent.add(bloom_keys(mine)).get();
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(mine, [&](const std::string& key) { return copy.contains(key); });
  }));
  auto other = silent.local_copy({.refresh = 24h}).get();
  (void)silent.add("late").get();
  other.refresh().get();
  EXPECT_TRUE(other.contains("late"));
}

TEST_P(SharedBloomContract, ALocalCopyOfALargeFilterIsRefused) {
  auto filter = made({.expected = 1'000'000});
  EXPECT_EQ(error_of([&] { (void)filter.local_copy({.max_bytes = 100'000}).get(); }),
            Errc::out_of_space);
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

TEST_P(SharedBloomContract, AFileBringsAllOfItBack) {
  const test::TempDir folder;
  const std::string file = (folder / "users.bloom").string();
  for (const SharedBloomSize& size : {small, chain}) {
    auto filter = made(size);
    const auto mine = names("mine:", size.scalable ? 250 : 80);
    (void)filter.add(bloom_keys(mine)).get();
    const auto before = filter.info().get();
    filter.save(file).get();
    (void)filter.remove().get();
    filter.load(file).get();
    EXPECT_TRUE(has_all(filter, mine));
    const auto after = filter.info().get();
    EXPECT_EQ(after.keys, before.keys);
    EXPECT_EQ(after.expected, before.expected);
    EXPECT_EQ(after.error_rate, before.error_rate);
    EXPECT_EQ(after.links.size(), before.links.size());
    (void)filter.add(bloom_keys(names("more:", 30))).get();
    EXPECT_EQ(filter.info().get().links.size(), before.links.size()) << "300 fit into two links";
    (void)filter.remove().get();
    EXPECT_TRUE(keys().empty());
  }
}

TEST_P(SharedBloomContract, AFileTakesThePlaceOfAnotherFilter) {
  const test::TempDir folder;
  const std::string file = (folder / "users.bloom").string();
  auto filter = made(small);
  (void)filter.add("saved").get();
  filter.save(file).get();
  (void)filter.remove().get();
  EXPECT_TRUE(filter.try_create({.expected = 5000, .error_rate = 0.001}).get());
  (void)filter.add("other").get();
  filter.load(file).get();
  EXPECT_TRUE(filter.contains("saved").get());
  EXPECT_FALSE(filter.contains("other").get());
  SharedBloomFilter java{store(), name("filter"), {.codec = BloomCodec::kryo5}};
  EXPECT_EQ(error_of([&] { java.load(file).get(); }), Errc::config_mismatch);
  EXPECT_EQ(error_of([&] { filter.load(file + ".missing").get(); }), Errc::bad_argument);
  EXPECT_EQ(error_of([&] { filter.save("/nowhere/x").get(); }), Errc::bad_argument);
}

TEST_P(SharedBloomContract, AFileThatIsCutOrChangedIsRefused) {
  if (GetParam() != test::StoreKind::embedded_memory) GTEST_SKIP() << "the file is the same";
  const test::TempDir folder;
  const std::string file = (folder / "users.bloom").string();
  auto filter = made({.expected = 10, .error_rate = 0.1, .scalable = true});
  (void)filter.add(bloom_keys(names("mine:", 10))).get();
  filter.save(file).get();
  const std::string whole = bytes_of(file);
  const auto is_refused = [&](const std::string& bytes) {
    std::ofstream{file, std::ios::binary | std::ios::trunc} << bytes;
    return error_of([&] { filter.load(file).get(); }) == Errc::corrupt;
  };
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_TRUE(is_refused(whole.substr(0, size))) << "cut at " << size;
  ASSERT_TRUE(is_refused(whole + '\0'));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    ASSERT_TRUE(is_refused(changed)) << "changed at " << at;
  }
  EXPECT_TRUE(filter.contains("mine:0").get()) << "and nothing was done";
  EXPECT_TRUE(keys().size() == 2U);
}

TEST_P(SharedBloomContract, KeysOfAnotherKindAreAnError) {
  store().run({"RPUSH", name("list"), "x"}).get();
  SharedBloomFilter list{store(), name("list")};
  EXPECT_EQ(error_of([&] { (void)list.try_create(small).get(); }), Errc::wrong_type);
  store().run({"SET", name("text") + ":config", "x"}).get();
  SharedBloomFilter text{store(), name("text")};
  EXPECT_EQ(error_of([&] { (void)text.try_create(small).get(); }), Errc::wrong_type);
  EXPECT_EQ(error_of([&] { (void)text.contains("a").get(); }), Errc::wrong_type);

  auto filter = made(small);
  store().run({"HSET", name("filter") + ":config", "hashIterations", "99999999"}).get();
  EXPECT_EQ(error_of([&] { (void)filter.add("a").get(); }), Errc::wrong_type);
  EXPECT_EQ(error_of([&] { (void)filter.info().get(); }), Errc::wrong_type);
  store().run({"HSET", name("filter") + ":config", "hashIterations", "5"}).get();
  store().run({"DEL", name("filter")}).get();
  store().run({"RPUSH", name("filter"), "x"}).get();
  EXPECT_EQ(error_of([&] { (void)filter.contains("a").get(); }), Errc::wrong_type);
  EXPECT_EQ(error_of([&] { (void)filter.add("a").get(); }), Errc::wrong_type);
  auto other = made(small, "other");
  EXPECT_EQ(error_of([&] { other.merge({name("filter")}).get(); }), Errc::wrong_type);
  store().run({"DEL", name("other") + ":config"}).get();
  store().run({"SET", name("other") + ":config", "x"}).get();
  EXPECT_EQ(error_of([&] { (void)other.add("a").get(); }), Errc::wrong_type);
}

TEST_P(SharedBloomContract, ACountThatIsNoneIsRefusedBeforeAnythingIsAdded) {
  auto filter = made(chain);
  (void)filter.add("a").get();
  for (const char* const count : {"", "many", "-1", "1.5", "nan", "99999999999999999999"}) {
    store().run({"HSET", name("filter") + ":config", "sluice:count", count}).get();
    try {
      ADD_FAILURE() << count << ": " << filter.add("b").get();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::wrong_type) << error.message();
      EXPECT_EQ(error.effect(), Effect::none) << error.message();
    }
    EXPECT_FALSE(filter.contains("b").get()) << count;
    EXPECT_TRUE(filter.contains("a").get()) << count;
  }
}

TEST_P(SharedBloomContract, NamesOutOfRangeAreRefused) {
  for (const std::string& bad :
       {std::string{}, std::string(1 << 21, 'x'), std::string{"a{b"}, std::string{"a}b"},
        std::string{"{}a"}, std::string{"{f}:next"}, std::string{"{t}f:next"},
        std::string{"{f}:config"}, std::string{"{f}:link:12"}, std::string{"{f:next}"}})
    EXPECT_EQ(error_of([&] { SharedBloomFilter{store(), bad}; }), Errc::bad_argument) << bad;
  for (const char* const good : {"f:next", "{f}next", "{f}:link:x", "{f}:link:"})
    SharedBloomFilter{store(), good};
  auto filter = made(small);
  EXPECT_EQ(error_of([&] { (void)filter.expire(0ms).get(); }), Errc::bad_argument);
  EXPECT_EQ(error_of([&] { (void)filter.rename("a{").get(); }), Errc::bad_argument);
  EXPECT_EQ(error_of([&] { (void)filter.rename(name("filter")).get(); }), Errc::bad_argument);
  EXPECT_EQ(error_of([&] { (void)filter.try_rebuild(small, {.lease = 1ms}).get(); }),
            Errc::bad_argument);
  EXPECT_EQ(error_of([&] { (void)filter.local_copy({.refresh = 0ms}).get(); }), Errc::bad_argument);
}

}  // namespace
}  // namespace sluice
