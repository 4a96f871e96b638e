/// Every verb of Redisson's RBloomFilter, as the commands that it sends, on every shape of a
/// filter: what was added is there, or the filter says by an Error that it is not whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "sluice/open.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

struct Shape {
  const char* name;
  SharedBloomSize size;
  int keys;
  bool is_of_java = false;
};
const std::vector<Shape> shapes{
    {"empty", {.expected = 100}, 0},
    {"plain", {.expected = 100}, 50},
    {"Java's, empty", {.expected = 100}, 0, true},
    {"empty chain", {.expected = 20, .scalable = true}, 0},
    {"chain of one link", {.expected = 20, .scalable = true}, 10},
    {"chain", {.expected = 20, .scalable = true}, 300},
};

class JavaVerbs : public testing::Test {
 protected:
  using Verb = std::function<void(JavaVerbs&)>;

  Value ask(const Names& words) { return side_.command(words); }
  bool is_there(const std::string& key) { return ask({"EXISTS", key}).as_integer() == 1; }
  /// RENAME, where there is something, as its scripts do.
  void move(const std::string& from, const std::string& to) {
    if (is_there(from)) ask({"RENAME", from, to});
  }
  void copy(const std::string& from, const std::string& to) { ask({"COPY", from, to}); }
  void each(const Names& words) {
    for (const char* const key : {"x", "{x}:config"}) {
      Names command = words;
      command.insert(command.begin() + 1, key);
      ask(command);
    }
  }
  /// What has a time to live is gone.
  void time_passes() {
    for (const auto& key : ask({"KEYS", "*"}).as_items())
      if (ask({"PTTL", key.as_text()}).as_integer() > 0) ask({"DEL", key.as_text()});
  }

  static const std::vector<std::pair<const char*, Verb>>& verbs() {
    static const std::vector<std::pair<const char*, Verb>> all{
        {"expire",
         [](JavaVerbs& at) {
           at.each({"PEXPIRE", "3600000"});
         }},
        {"expire, and time passes",
         [](JavaVerbs& at) {
           at.each({"PEXPIRE", "3600000"}), at.time_passes();
         }},
        {"clearExpire",
         [](JavaVerbs& at) {
           at.each({"PEXPIRE", "3600000"}), at.each({"PERSIST"});
         }},
        {"delete",
         [](JavaVerbs& at) {
           at.ask({"DEL", "x", "{x}:config"});
         }},
        {"unlink",
         [](JavaVerbs& at) {
           at.ask({"UNLINK", "x"});
         }},
        {"rename",
         [](JavaVerbs& at) { at.move("x", "{x}y"), at.move("{x}:config", "{x}y:config"); }},
        {"copy", [](JavaVerbs& at) { at.copy("x", "{x}y"), at.copy("{x}:config", "{x}y:config"); }},
        {"migrate", [](JavaVerbs& at) { at.move("x", "{x}y"); }},
        {"move of the config", [](JavaVerbs& at) { at.move("{x}:config", "{x}y:config"); }},
        {"eviction of a link",
         [](JavaVerbs& at) {
           at.ask({"DEL", "{x}:link:1"});
         }},
    };
    return all;
  }

  void fill(const Shape& shape) {
    ask({"FLUSHALL"});
    added_.clear();
    SharedBloomFilter filter{*store_, "x"};
    ASSERT_TRUE(filter.try_create(shape.size).get());
    if (shape.is_of_java) {  // as tryInit leaves it
      ask({"DEL", "x"});
      ask({"HDEL", "{x}:config", "sluice:bits"});
    }
    for (int i = 0; i < shape.keys; ++i) {
      added_.push_back(fmt::to_string(i));
      (void)filter.add(i).get();
    }
  }
  /// How many keys a filter says to be absent, asked in one way; none where it throws.
  std::string lost(const std::string& name, const char* way, const std::function<bool()>& has_all) {
    ++inputs_;
    try {
      return has_all() ? "" : fmt::format("{} of '{}' does not find all; ", way, name);
    } catch (const Error& error) {
      const bool is_said = error.errc() == Errc::closed || error.errc() == Errc::corrupt;
      return is_said ? "" : fmt::format("{}: {}; ", way, error.message());
    }
  }
  std::string lost(const std::string& name) {
    SharedBloomFilter filter{*store_, name};
    const auto all_of = [](const std::vector<bool>& answers) {
      return std::ranges::find(answers, false) == answers.end();
    };
    return lost(name, "contains",
                [&] {
                  for (const auto& key : added_)
                    if (!filter.contains(key).get()) return false;
                  return true;
                }) +
           lost(name, "a bulk", [&] { return all_of(filter.contains(bloom_keys(added_)).get()); }) +
           lost(name, "a copy",
                [&] {
                  const auto copy = filter.local_copy().get();
                  return std::ranges::all_of(added_,
                                             [&](const auto& key) { return copy.contains(key); });
                }) +
           lost(name, "info", [&] { return filter.info().get().keys > 0 || added_.empty(); });
  }
  /// What is left of all keys when the filter is used once more, and time passes or it is removed.
  std::string left_over() {
    std::string left;
    SharedBloomFilter filter{*store_, "x"};
    ask({"DEL", "{x}y", "{x}y:config"});
    try {
      const bool ends = ask({"PTTL", "{x}:config"}).as_integer() > 0;
      for (int i = 1000; i < 1040; ++i) (void)filter.add(i).get();  // some are new
      if (ends) time_passes();
    } catch (const Error&) {
    }
    ask({"DEL", "x", "{x}:config"});  // what a Java program does to mend it
    if (!filter.try_create({.expected = 100}).get()) left += "not made anew; ";
    if (filter.contains("1").get()) left += "the new one has an old key; ";
    (void)filter.remove().get();
    for (const auto& key : ask({"KEYS", "*"}).as_items()) left += key.as_text() + " is left; ";
    return left;
  }

  test::RedisServer server_;
  test::PlainClient side_{server_.port()};
  std::unique_ptr<Store> store_ = open(server_.url());
  std::vector<std::string> added_;
  int inputs_ = 0;
};

TEST_F(JavaVerbs, BC02_LoseNoKeyInSilence) {
  for (const auto& shape : shapes)
    for (const auto& [name, verb] : verbs()) {
      fill(shape);
      verb(*this);
      const std::string trouble = lost("x") + lost("{x}y") + left_over();
      EXPECT_EQ(trouble, "") << shape.name << ", " << name << "; found by input " << inputs_;
    }
}

TEST_F(JavaVerbs, BC10_WhatIsAddedEndsWithTheFilter) {
  for (const auto& shape : shapes) {
    fill(shape);
    each({"PEXPIRE", "3600000"});
    SharedBloomFilter filter{*store_, "x"};
    for (int i = 1000; i < 1010; ++i) (void)filter.add(i).get();
    for (const auto& key : ask({"KEYS", "*"}).as_items())
      EXPECT_GT(ask({"PTTL", key.as_text()}).as_integer(), 0)
          << shape.name << ": " << key.as_text();
  }
}

TEST_F(JavaVerbs, BC02_AFilterThatIsNotWholeSaysWhichKeyIsMissing) {
  fill(shapes.back());
  move("x", "{x}y"), move("{x}:config", "{x}y:config");
  SharedBloomFilter filter{*store_, "{x}y"};
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"contains", [&] { (void)filter.contains("none").get(); }},
      {"add", [&] { (void)filter.add("none").get(); }},
      {"expire", [&] { (void)filter.expire(1h).get(); }},
      {"rename", [&] { (void)filter.rename("{x}z").get(); }},
      {"info", [&] { (void)filter.info().get(); }},
  };
  const auto keys = ask({"DBSIZE"}).as_integer();
  for (const auto& [name, call] : calls) {
    try {
      call();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt) << error.message();
      EXPECT_EQ(error.effect(), Effect::none) << error.message();
      EXPECT_NE(error.message().find("'{x}y:link:1'"), std::string::npos) << error.message();
    }
  }
  EXPECT_EQ(ask({"DBSIZE"}).as_integer(), keys);
  ask({"RENAME", "{x}:link:1", "{x}y:link:1"});  // as far as there were
  for (int link = 2; is_there(fmt::format("{{x}}:link:{}", link)); ++link)
    ask({"RENAME", fmt::format("{{x}}:link:{}", link), fmt::format("{{x}}y:link:{}", link)});
  for (const auto& key : added_) EXPECT_TRUE(filter.contains(key).get()) << key;
}

}  // namespace
}  // namespace sluice
