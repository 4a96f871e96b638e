#include <gtest/gtest.h>

#include "proxy/support/planning.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {
namespace {

PoolSettings strict_settings() {
  auto settings = redis_settings();
  settings.compat = Compat::strict;
  return settings;
}

struct StrictRedis : testing::Test {
  Planned of(std::string_view line) { return planned(*protocol, line); }
  std::unique_ptr<Protocol> protocol = make_redis_protocol(strict_settings());
};

TEST_F(StrictRedis, EveryRowIsACommand) {
#define KEY(name, shape, words) \
  EXPECT_NE(resp::find_command(std::string_view{name}), nullptr) << (name);
#define FRAGMENTS(name, shape, words, merge) KEY(name, , )
#define LOCAL(name, shape, words, serves) KEY(name, , )
#include "proxy/redis/twemproxy_commands.def"
#undef KEY
#undef FRAGMENTS
#undef LOCAL
}

TEST_F(StrictRedis, GoesByTheFirstKeyAlone) {
  for (const auto* const line :
       {"EXISTS a b c", "SINTER a b", "PFMERGE a b", "SORT a BY w_*", "LMOVE a b LEFT LEFT"}) {
    EXPECT_EQ(of(line).plan.route, Route::one) << line;
    EXPECT_EQ(of(line).keys, std::vector<std::size_t>{1}) << line;
  }
  EXPECT_EQ(of("EVAL x 2 a b").keys, std::vector<std::size_t>{3});
  EXPECT_EQ(of("EVALSHA x 1 a").plan.route, Route::one);
}

TEST_F(StrictRedis, ClosesWithoutAWordOnAllElse) {
  for (const auto* const line : {"FOO",
                                 "QUIT a",
                                 "QUIT a",
                                 "GET",
                                 "GET a b",
                                 "PING a",
                                 "ECHO a",
                                 "SELECT 1",
                                 "HELLO 3",
                                 "INFO",
                                 "MULTI",
                                 "EVAL x 0 a",
                                 "EVAL x x a",
                                 "AUTH user password",
                                 "COMMAND DOCS",
                                 "MSET a 1 b",
                                 "XADD s * f v",
                                 "KEYS *",
                                 "CLIENT SETNAME x",
                                 "MSETNX a 1"}) {
    const auto plan = of(line);
    EXPECT_EQ(plan.plan.route, Route::close) << line;
    EXPECT_TRUE(plan.plan.drop_pending) << line;
    EXPECT_EQ(plan.reply, "") << line;
  }
}

TEST_F(StrictRedis, KeepsWhatIsPendingForQuit) {
  EXPECT_EQ(of("QUIT").plan.route, Route::close);
  EXPECT_FALSE(of("QUIT").plan.drop_pending);
  EXPECT_EQ(of("QUIT").reply, "");
}

TEST_F(StrictRedis, AKeyFitsInABuffer) {
  const std::string fits(16335, 'k'), too_long(16336, 'k');
  EXPECT_EQ(of("GET " + fits).plan.route, Route::one);
  EXPECT_EQ(of("GET " + too_long).plan.route, Route::close);
  EXPECT_EQ(of("MGET a " + too_long).plan.route, Route::close);
  EXPECT_EQ(of("SINTER a " + too_long).plan.route, Route::one);
  EXPECT_EQ(of("MSET a " + too_long).plan.route, Route::one);
  EXPECT_EQ(of("EVAL x 1 " + too_long).plan.route, Route::close);
  const auto small = make_redis_protocol(strict_settings(), 512);
  EXPECT_EQ(planned(*small, "GET " + std::string(464, 'k')).plan.route, Route::close);
}

TEST_F(StrictRedis, AnswersAuthAsTwemproxy) {
  EXPECT_EQ(of("AUTH a").reply, "-ERR Client sent AUTH, but no password is set\r\n");
  auto settings = strict_settings();
  settings.redis_auth = "secret";
  const auto guarded = make_redis_protocol(settings);
  EXPECT_EQ(planned(*guarded, "AUTH secret").reply, "+OK\r\n");
  EXPECT_EQ(planned(*guarded, "AUTH wrong").reply, "-ERR invalid password\r\n");
  EXPECT_EQ(planned(*guarded, "AUTH secret").plan.verb, SessionVerb::auth);
}

TEST_F(StrictRedis, TypedLinesAreClosed) {
  for (const auto* const bytes : {"PING\r\n", "\r\n", "*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n"}) {
    const auto reader = protocol->request_reader();
    EXPECT_EQ(reader->read(bytes), RequestReader::State::bad) << bytes;
    EXPECT_EQ(reader->error_reply(), "") << bytes;
  }
}

}  // namespace
}  // namespace sluice::proxy
