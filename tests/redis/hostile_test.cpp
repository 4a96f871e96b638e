// The client against a server whose replies to some calls are odd, while others call on the same
// Store. One seed for each round:
//
//     redis_test --gtest_filter='Hostile.*' --gtest_repeat=1000
//
// draws other seeds in each repetition.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "redis/fake_server.hpp"
#include "redis/odd_replies.hpp"
#include "resp/reply_parser.hpp"
#include "sluice/store.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Dice;
using test::FakeServer;
using test::OddReply;
using test::rounds;

std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

/// How often each write was executed, by its key.
class Executed {
 public:
  void note(const std::string& key) {
    const std::lock_guard lock{mutex_};
    ++counts_[key];
  }
  int count(const std::string& key) const {
    const std::lock_guard lock{mutex_};
    const auto found = counts_.find(key);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
};

/// What a write was told.
struct Told {
  std::string key;
  bool repeatable = false;
  std::optional<Effect> failed{};  ///< nothing: it was answered
  std::string why{};
};

bool is_truthful(const Told& told, int executed) {
  if (executed > 1 && !told.repeatable) return false;
  if (!told.failed) return executed > 0;
  switch (*told.failed) {
    case Effect::none: return executed == 0;
    case Effect::done: return executed > 0;
    case Effect::unknown: return true;
  }
  return false;
}

/// Keys that begin with "odd" are answered oddly; the value of any other is its name.
class HostileServer {
 public:
  explicit HostileServer(std::uint64_t seed)
      : seed_(seed),
        server_([this](FakeServer::Peer& peer, int number) { serve(peer, number); },
                FakeServer::Serves::at_once) {}

  redis::RedisOptions options() const {
    auto options = server_.options();
    options.command_timeout = 300ms;  // so long a silent connection is kept
    return options;
  }
  /// Everything that clients sent before they left has been executed.
  void await_end_of_clients() const {
    while (serving_ > 0) std::this_thread::yield();
  }
  int executed(const std::string& key) const { return executed_.count(key); }

 private:
  void serve(FakeServer::Peer& peer, int number) {
    ++serving_;
    answer_all(peer, number);
    --serving_;
  }

  void answer_all(FakeServer::Peer& peer, int number) {
    Dice dice{seed_ + static_cast<std::uint64_t>(number)};
    if (number > 0 && dice.chance(10)) return refuse(peer, dice);
    if (!peer.greet()) return;
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      if (dice.chance(5)) peer.send(test::random_push(dice));
      if (words.size() > 1 && words[1].starts_with("odd")) {
        if (!answer_oddly(peer, dice, words)) return;
      } else {
        if (words[0] == "SET") executed_.note(words[1]);
        if (words[0] == "SET" && dice.chance(2)) return;
        send_in_pieces(peer, dice, words[0] == "SET" ? "+OK\r\n" : bulk(words.back()));
      }
    }
  }

  static void refuse(FakeServer::Peer& peer, Dice& dice) {
    if (peer.command().empty()) return;
    peer.send(dice.chance(50) ? test::random_reply(dice) : "-LOADING not yet\r\n");
  }

  /// False: the connection is over.
  bool answer_oddly(FakeServer::Peer& peer, Dice& dice, const std::vector<std::string>& words) {
    const OddReply reply = test::odd_reply(dice);
    const bool is_lost = reply.never_ends && dice.chance(30);
    if (words[0] == "SET" && !reply.is_error && !is_lost) executed_.note(words[1]);
    send_in_pieces(peer, dice, reply.bytes);
    if (reply.then == OddReply::Then::wait) peer.wait_for_end();
    return reply.then == OddReply::Then::go_on;
  }

  static void send_in_pieces(FakeServer::Peer& peer, Dice& dice, std::string_view bytes) {
    if (dice.chance(10)) {
      const auto cut = dice.below(bytes.size() + 1);
      peer.send(bytes.substr(0, cut));
      bytes.remove_prefix(cut);
    }
    peer.send(bytes);
  }

  const std::uint64_t seed_;
  std::atomic<int> serving_{0};
  Executed executed_;
  FakeServer server_;
};

/// One caller of a Store; its calls come from a seed.
class Caller {
 public:
  Caller(Store& store, std::uint64_t seed, int number)
      : store_(store), dice_(seed), name_("n" + std::to_string(number) + "x") {}

  void call(int times) {
    for (int i = 0; i < times; ++i) {
      const std::string key = name_ + std::to_string(i) + "x";
      switch (dice_.below(6)) {
        case 0: read(key); break;
        case 1: read_batch(key); break;
        case 2: write(key); break;
        case 3: write("odd" + key); break;
        case 4: read_oddly("odd" + key); break;
        default: mixed_batch(key); break;
      }
    }
  }

  const std::vector<Told>& told() const noexcept { return told_; }

 private:
  static constexpr std::chrono::milliseconds patience = 30s;
  /// A server that says nothing costs so much.
  static constexpr std::chrono::milliseconds brief = 200ms;

  void expect_own(const Value& reply, const std::string& key) {
    EXPECT_EQ(to_string(reply, 200), '"' + key + '"') << "the reply to another call";
  }
  void read(const std::string& key) try {
    expect_own(store_.run({"GET", key}, {.timeout = patience}).get(), key);
  } catch (const Error& error) {
    ADD_FAILURE() << "a read that nothing is wrong with: " << error.what();
  }
  void read_batch(const std::string& key) try {
    Batch batch;
    for (const char* const end : {"a", "b", "c"}) batch.add({"GET", key + end});
    const auto replies = store_.run(std::move(batch), {.timeout = patience}).get();
    ASSERT_EQ(replies.size(), 3U);
    expect_own(replies[0], key + "a");
    expect_own(replies[1], key + "b");
    expect_own(replies[2], key + "c");
  } catch (const Error& error) {
    ADD_FAILURE() << "a read that nothing is wrong with: " << error.what();
  }
  /// What stands beside an odd reply is right, too.
  void mixed_batch(const std::string& key) try {
    Batch batch;
    batch.add({"GET", key + "a"}).add({"GET", "odd" + key}).add({"GET", key + "b"});
    const auto replies = store_.run(std::move(batch), {.timeout = brief}).get();
    ASSERT_EQ(replies.size(), 3U);
    expect_own(replies[0], key + "a");
    expect_own(replies[2], key + "b");
  } catch (const Error& error) {
    expect_said(error);
  }
  void read_oddly(const std::string& key) try {
    (void)store_.run({"GET", key}, {.timeout = brief}).get();
  } catch (const Error& error) {
    expect_said(error);
  }
  void write(const std::string& key) {
    Told told{.key = key, .repeatable = dice_.chance(30)};
    try {
      store_.run({"SET", key, "v"}, {.timeout = brief, .repeatable = told.repeatable}).get();
    } catch (const Error& error) {
      told.failed = error.effect();
      told.why = error.message().substr(0, 200);
      expect_said(error);
    }
    told_.push_back(std::move(told));
  }
  static void expect_said(const Error& error) {
    EXPECT_GT(error.message().size(), 10U) << "it says nothing";
    EXPECT_NE(error.errc(), Errc::bad_argument) << error.what();
  }

  Store& store_;
  Dice dice_;
  const std::string name_;
  std::vector<Told> told_;
};

std::uint64_t first_seed() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1'000'000);
}

void play(std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const HostileServer server{seed};
  auto store = redis::open_redis(server.options());
  std::vector<Caller> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i)
    callers.emplace_back(*store, seed + 1000 + static_cast<std::uint64_t>(i), i);
  {
    std::vector<std::jthread> threads;
    for (auto& caller : callers) threads.emplace_back([&caller] { caller.call(40); });
  }
  store.reset();
  server.await_end_of_clients();
  for (const auto& caller : callers)
    for (const auto& told : caller.told())
      EXPECT_TRUE(is_truthful(told, server.executed(told.key)))
          << told.key << (told.failed ? " failed: " + told.why : " was answered") << ", executed "
          << server.executed(told.key) << " times";
}

TEST(Hostile, OddRepliesHarmNoNeighbour) {
  const auto begin = first_seed();
  for (std::uint64_t i = 0; i < rounds(5U) && !HasFailure(); ++i) play(begin + i * 10'000);
}

/// Whether a call that is answered so ends, and what is left over cannot be taken for the beginning
/// of a push that the next reply belongs to.
bool may_go_on(std::string_view bytes) {
  resp::ReplyParser parser;
  bool is_answered = false;
  try {
    while (const auto value = parser.next(bytes)) is_answered |= value->type() != Value::Type::push;
    return is_answered && (parser.idle() || parser.is_in_reply());
  } catch (const Error&) {
    return true;  // it is not RESP
  }
}

/// A call alone, whose reply may be followed by bytes of a further one; then one that must be
/// right.
void play_alone(std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  FakeServer server{[seed](FakeServer::Peer& peer, int number) {
    Dice dice{seed + static_cast<std::uint64_t>(number)};
    if (!peer.greet()) return;
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      if (words.back() != "odd") {
        peer.send(bulk(words.back()));
        continue;
      }
      const auto reply = test::mutated_reply(dice);
      peer.send(reply);
      if (!may_go_on(reply) || dice.chance(20)) return;
    }
  }};
  const auto store = redis::open_redis(server.options());
  for (int i = 0; i < 20; ++i) {
    try {
      (void)store->run({"GET", "odd"}).get();
    } catch (const Error&) {
    }
    const std::string canary = "canaryX" + std::to_string(i) + "X";
    ASSERT_EQ(to_string(store->run({"GET", canary}).get(), 200), '"' + canary + '"') << i;
  }
}

TEST(Hostile, AnyBytesAreNotTakenForTheNextReply) {
  const auto begin = first_seed();
  for (std::uint64_t i = 0; i < rounds(20U) && !HasFailure(); ++i) play_alone(begin + i * 10'000);
}

Task<std::string> ask_after_an_odd_one(Store& store, std::string key) {
  auto odd = store.run({"GET", "odd"});
  (void)co_await odd;
  auto next = store.run({"GET", key});
  co_return to_string(co_await next, 200);
}

/// The caller who was answered may ask the next before what is left over has been looked at.
TEST(Hostile, TheBeginningOfAReplyToNobodyIsNotOfTheNextCall) {
  FakeServer server{[](FakeServer::Peer& peer, int) {
    if (!peer.greet()) return;
    for (auto words = peer.command(); !words.empty(); words = peer.command())
      peer.send(words.back() == "odd" ? "+OK\r\n+QUE" : bulk(words.back()));
  }};
  const auto store = redis::open_redis(server.options());
  for (int i = 0; i < 100; ++i) {
    const std::string canary = "canaryX" + std::to_string(i) + "X";
    ASSERT_EQ(ask_after_an_odd_one(*store, canary).get(), '"' + canary + '"') << i;
  }
}

TEST(Hostile, HugeAnnouncementsTakeNoMemory) {
  if (test::is_sanitized) GTEST_SKIP() << "a sanitizer has memory of its own";
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty()) return;
    std::string nested;
    for (int i = 0; i < 9'000; ++i) nested += number % 2 == 0 ? "*2147483647\r\n" : "%1000000\r\n";
    peer.send(nested + "$536870912\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  const auto peak = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;  // KiB
  };
  const auto before = peak();
  for (int i = 0; i < 4; ++i) EXPECT_THROW(store->run({"SET", "k", "v"}).get(), Error);
  EXPECT_LT(peak() - before, 64 << 10);
}

}  // namespace
}  // namespace sluice
