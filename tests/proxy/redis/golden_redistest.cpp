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

}  // namespace
}  // namespace sluice::proxy
