// Compat::strict against a running nutcracker: every command with one word to seven, and odd forms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proxy/support/compare.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/planning.hpp"
#include "resp/command_table.hpp"
#include "resp/writer.hpp"
#include "support/redis_server.hpp"

namespace sluice::proxy {
namespace {

std::string wire_of(const WordList& words) {
  std::string wire;
  resp::append_command(wire, words);
  return wire;
}

struct Golden : testing::Test {
  Golden() { test::talk(nutcracker.port(), wire_of({"SET", "the end", "SENTINEL"}), "+OK\r\n"); }

  void compare(const std::string& bytes) {
    expect_like_twemproxy(*protocol, nutcracker.port(), bytes, before, behind);
  }

  test::RedisServer first, second;
  test::Nutcracker nutcracker{test::redis_pool({first.port(), second.port()})};
  Reading before{wire_of({"GET", "nothing"}), "$-1\r\n"};
  Reading behind{wire_of({"GET", "the end"}), "$8\r\nSENTINEL\r\n"};
  std::unique_ptr<Protocol> protocol = [] {
    auto settings = redis_settings();
    settings.compat = Compat::strict;
    return make_redis_protocol(settings);
  }();
};

TEST_F(Golden, EveryCommandWithSomeWords) {
  for (const auto& spec : resp::all_commands()) {
    if (spec.name.contains('|')) continue;
    WordList words{spec.name};
    for (; words.size() <= 7; words.emplace_back("1")) compare(wire_of(words));
  }
}

TEST_F(Golden, OddForms) {
  const std::string rows[] = {
      wire_of({"Get", "a"}),
      wire_of({"GET", ""}),
      wire_of({"nosuch", "a"}),
      wire_of({"MGET", "", "a", "a"}),
      wire_of({"MSET", "a", "1", "b", "2", "c"}),
      wire_of({"EVAL", "return 1", "0"}),
      wire_of({"EVAL", "return 1", "0", "a"}),
      wire_of({"EVAL", "return 1", "00", "a"}),
      wire_of({"EVAL", "return 1", "2", "a", "b"}),
      wire_of({"EVAL", "return 1", "3", "a", "b"}),
      wire_of({"EVAL", "return 1", "+1", "a"}),
      wire_of({"EVAL", "return 1", "-1", "a"}),
      wire_of({"EVAL", "return 1", "x", "a"}),
      wire_of({"EVAL", "return 1", "", "a"}),
      wire_of({"EVAL", "", "1", "a"}),
      wire_of({"QUIT", "a"}),
      wire_of({"COMMAND", "DOCS"}),
      wire_of({"LOLWUT", "VERSION", "5"}),
      wire_of({"AUTH", "a"}),
      wire_of({"AUTH", "a", "b"}),
      wire_of({"SET", "a", std::string_view("\0\r\n\xff", 4)}),
      "PING\r\n",
      "\r\n",
      "*0\r\n",
      "*-1\r\n",
      "*+1\r\n$4\r\nPING\r\n",
      "*1\r\n$-1\r\n",
      "*2\r\n$3\r\nGET\r\n$-1\r\n",
      "*2\r\n$3\r\nGET\r\n$+1\r\na\r\n",
      "*1\r\n$4\r\nPINGxx",
      "*2\r\n$3\r\nGET\r\n$1\r\naxx",
      "*1\r\n+PING\r\n",
      "*2\n$3\nGET\n$1\na\n",
      "*2\r\n$3\nGET",
      "$4\r\nPING\r\n",
  };
  for (const auto& row : rows) compare(row);
}

TEST_F(Golden, AKeyMustFitInABuffer) {
  for (const auto size : {16335U, 16336U, 16384U}) {
    const std::string text(size, 'k');
    compare(wire_of({"GET", text}));
    compare(wire_of({"SET", text, "v"}));
    compare(wire_of({"SET", "k", text}));
    compare(wire_of({"MGET", "k", text}));
    compare(wire_of({"MSET", "k", text, "l", "v"}));
    compare(wire_of({"SINTER", "k", text}));
    compare(wire_of({"EVAL", "return 1", "1", text}));
  }
}

TEST(GoldenAuth, OfAPoolWithAPassword) {
  const test::RedisServer server{{"requirepass secret"}};
  auto lines = test::redis_pool({server.port()});
  lines.insert(lines.begin(), "redis_auth: secret");
  const test::Nutcracker nutcracker{lines};
  auto settings = redis_settings();
  settings.compat = Compat::strict;
  settings.redis_auth = "secret";
  const auto protocol = make_redis_protocol(settings);
  const auto right = wire_of({"AUTH", "secret"});
  for (const auto* const password : {"secret", "wrong", ""}) {
    expect_like_twemproxy(*protocol, nutcracker.port(), wire_of({"AUTH", password}),
                          {right, "+OK\r\n"}, {right, "+OK\r\n"});
  }
}

/// What a server says to a command that is forwarded: one reply, as the tables have it.
TEST(RedisReplies, OneForEachCommandThatIsForwarded) {
  const test::RedisServer server;
  auto settings = redis_settings();
  for (const auto& spec : resp::all_commands()) settings.allow.emplace_back(spec.name);
  const auto protocol = make_redis_protocol(settings);
  for (const auto& spec : resp::all_commands()) {
    if (spec.name.starts_with("debug")) continue;  // it may do anything
    const auto bar = spec.name.find('|');
    WordList words{spec.name.substr(0, bar)};
    if (bar != std::string_view::npos) words.push_back(spec.name.substr(bar + 1));
    while (words.size() < static_cast<std::size_t>(std::abs(spec.arity))) words.emplace_back("1");
    const auto plan = protocol->plan(words);
    if (plan.route == Route::local || plan.route == Route::session ||
        plan.route == Route::refused || plan.route == Route::close)
      continue;
    const std::string marker = "$6\r\nmarker\r\n";
    auto said =
        test::talk(server.port(), wire_of(words) + wire_of({"ECHO", "marker"}), marker).bytes;
    ASSERT_TRUE(said.ends_with(marker)) << spec.name;
    const auto reader = protocol->reply_reader();
    ASSERT_EQ(reader->read(said), ReplyReader::State::complete) << spec.name;
    EXPECT_EQ(reader->size() + marker.size(), said.size()) << spec.name << said;
  }
}

}  // namespace
}  // namespace sluice::proxy
