// Compat::strict against a running nutcracker, and what is served beyond it against a running
// memcached.
#include <gtest/gtest.h>

#include "proxy/memcached/asking.hpp"
#include "proxy/memcached/commands.hpp"
#include "proxy/support/compare.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"

namespace sluice::proxy {
namespace {

struct GoldenMemcached : testing::Test {
  GoldenMemcached() {
    test::talk(nutcracker.port(), "set the_end 0 0 8\r\nSENTINEL\r\n", "STORED\r\n");
  }

  void compare(const std::string& bytes) {
    expect_like_twemproxy(*protocol, nutcracker.port(), bytes, before, behind);
  }

  test::Memcached first, second;
  test::Nutcracker nutcracker{test::memcached_pool({first.port(), second.port()})};
  Reading before{"get nothing\r\n", "END\r\n"};
  Reading behind{"get the_end\r\n", "VALUE the_end 0 8\r\nSENTINEL\r\nEND\r\n"};
  std::unique_ptr<Protocol> protocol = [] {
    auto settings = memcached_settings();
    settings.compat = Compat::strict;
    return make_memcached_protocol(settings);
  }();
};

TEST_F(GoldenMemcached, EveryCommandWithSomeWords) {
  for (const auto& command : memcached_commands()) {
    std::string line{command.name};
    for (std::size_t words = 1; words <= 7; ++words, line += " 1")
      compare(line + (command.kind == MemcachedKind::store && words >= command.least ? "\r\nx\r\n"
                                                                                     : "\r\n"));
    compare(line.substr(0, line.size() - 2) + " noreply\r\n");
  }
}

TEST_F(GoldenMemcached, OddForms) {
  const std::string rows[] = {
      " get k\r\n",
      "get  k  \r\n",
      "get \r\n",
      "get k k\r\n",
      "gets k none k\r\n",
      "get k noreply\r\n",
      "GET k\r\n",
      "Set k 0 0 1\r\nx\r\n",
      "nosuch\r\n",
      "\r\n",
      "get k\rx",
      "get a\tb\r\n",
      "get a\x01z\r\n",
      "set k 0 0 1 noreply\r\nx\r\n",
      "set k 0 0 1 noreply \r\nx\r\n",
      "set k 0 0 1 nop\r\nx\r\n",
      "set k 0 0 1 noreply noreply\r\nx\r\n",
      "set k 0 0 1 n\r\nx\r\n",
      "set k 0 -1 1\r\nx\r\n",
      "set k -1 0 1\r\nx\r\n",
      "set k 0 0 -1\r\nx\r\n",
      "set k 0 0 3\r\nabcdef\r\n",
      "set k 0 0 1\r\nxy\r\n",
      "set k 0 0 0\r\n\r\n",
      "set k 01 01 01\r\nx\r\n",
      "set k 99999999999 0 1\r\nx\r\n",
      "set k 0 99999999999 1\r\nx\r\n",
      "set  k  0  0  1\r\nx\r\n",
      "set k\x01 0 0 1\r\nx\r\n",
      "set k 0 0 x\r\nx\r\n",
      "cas k 0 0 1 1\r\nx\r\n",
      "cas k 0 0 1 1 noreply\r\nx\r\n",
      "cas k 0 0 1\r\nx\r\n",
      "cas k 0 0 1 x\r\nx\r\n",
      "cas k 0 0 1 -1\r\nx\r\n",
      "delete k noreply\r\n",
      "delete k  noreply\r\n",
      "delete k 0\r\n",
      "delete k 0 noreply\r\n",
      "delete k n\r\n",
      "delete \r\n",
      "delete k\tb\r\n",
      "incr k -1\r\n",
      "incr k -\r\n",
      "incr k --1\r\n",
      "incr k 1 noreply\r\n",
      "incr k x\r\n",
      "incr k 1x\r\n",
      "incr k +1\r\n",
      "incr k 99999999999999999999\r\n",
      "decr k 1 2\r\n",
      "touch k -1\r\n",
      "touch k 0 noreply\r\n",
      "touch k x\r\n",
      "version \r\n",
      "version a\r\n",
      "quit \r\n",
      "quit a\r\n",
      "quit noreply\r\n",
      "mn\r\n",
      "mg k v\r\n",
      "get " + std::string(250, 'k') + "\r\n",
      "get " + std::string(251, 'k') + "\r\n",
      "set " + std::string(251, 'k') + " 0 0 1\r\nx\r\n",
      "get a " + std::string(251, 'k') + "\r\n",
      "\x80\r\n",
  };
  for (const auto& row : rows) compare(row);
}

/// What a memcached says, up to its answer to a question that it always answers.
std::string said_by(const test::Memcached& server, const std::string& bytes) {
  auto said = test::talk(server.port(), bytes + "mn\r\n", "MN\r\n").bytes;
  return said.substr(0, said.size() - 4);
}

TEST(Memcached, AQuietFlagKeptHereHidesWhatTheServerWould) {
  const test::Memcached asked_as_it_is, asked_aloud;
  const char* const rows[] = {
      "mg none v q\r\n",      "ms k 1 q\r\n5\r\n",      "mg k v q\r\n",
      "mg k q\r\n",           "mg k q k O12\r\n",       "ms k 1 q O1 k\r\n6\r\n",
      "ms k 1 ME q\r\n7\r\n", "ms k 1 C1 q\r\n7\r\n",   "ms none 1 MR q\r\nx\r\n",
      "ma k q\r\n",           "ma k q v\r\n",           "ma none q\r\n",
      "ma k C1 q\r\n",        "md k C1 q\r\n",          "md k q O9\r\n",
      "md k q\r\n",           "mg k v q O5 k\r\n",      "ms k x q\r\n",
      "mg k zz q\r\n",        "ms Zm9v 1 b q\r\nx\r\n", "mg Zm9v b q v k\r\n",
      "me k q\r\n",           "me none q\r\n",
  };
  for (const auto* const row : rows) {
    auto asked = ask(row);
    if (asked.plan.forward.empty()) {
      EXPECT_EQ(said_by(asked_as_it_is, row), asked.error_reply()) << row;
      continue;
    }
    const auto heard = said_by(asked_aloud, asked.wire());
    ASSERT_NE(heard, "") << row;
    EXPECT_EQ(said_by(asked_as_it_is, row),
              asked.protocol().is_silent(asked.plan.quiet, heard) ? "" : heard)
        << row;
  }
}

TEST(Memcached, GivesNoSecondReplyToWhatIsForwarded) {
  const test::Memcached server;
  const std::string rows[] = {
      "set k 4294967295 -2147483647 1\r\nx\r\n",
      "set k 0 2147483647 0\r\n\r\n",
      "set k 0 0 1 nop\r\nx\r\n",
      "cas k 0 0 1 18446744073709551615\r\nx\r\n",
      "incr k -1\r\n",
      "incr k x\r\n",
      "incr k x y\r\n",
      "touch k x\r\n",
      "delete k 1\r\n",
      "delete k 1 2\r\n",
      "gat x k\r\n",
      "ms k 1 Tx\r\n1\r\n",
      "ms k 1 zz\r\n1\r\n",
      "ms k 1 E1 E2\r\n1\r\n",
      "mg k v v\r\n",
      "me k a\r\n",
      "get k\n",
      "touch k 1 1\r\n",
      "set k 0 0 2000000\r\n" + std::string(2'000'000, 'x') + "\r\n",
      "ms k 2000000\r\n" + std::string(2'000'000, 'x') + "\r\n",
  };
  for (const auto& row : rows) {
    auto asked = ask(row);
    ASSERT_EQ(asked.plan.route, Route::one) << row.substr(0, 40);
    const auto said = said_by(server, row);
    const auto reader = asked.protocol().reply_reader();
    ASSERT_EQ(reader->read(said), ReplyReader::State::complete) << row.substr(0, 40) << said;
    EXPECT_EQ(reader->size(), said.size()) << row.substr(0, 40) << said;
  }
}

TEST(Memcached, GivesOneReplyOrNoneAsTheTableHasIt) {
  const test::Memcached server;
  auto settings = memcached_settings();
  settings.allow = {"stats", "flush_all", "verbosity"};
  for (const auto& command : memcached_commands())
    for (std::size_t words = 1; words <= 24; ++words)
      for (const auto* const last : {"1", "0", "noreply", "x", "q"}) {
        std::string line{command.name};
        for (std::size_t at = 2; at < words; ++at) line += " 1";
        if (words > 1) line += ' ' + std::string{last};
        Asked asked{settings, line + "\r\n" + (command.has_data() ? "1\r\n" : "")};
        if (asked.state != RequestReader::State::complete ||
            (asked.plan.route != Route::one && asked.plan.route != Route::any &&
             asked.plan.route != Route::every && asked.plan.route != Route::homes))
          continue;
        const auto said = said_by(server, asked.wire());
        const auto reader = asked.protocol().reply_reader();
        ASSERT_EQ(!said.empty(), asked.plan.expects_reply) << line << " -> " << said;
        if (said.empty()) continue;
        ASSERT_EQ(reader->read(said), ReplyReader::State::complete) << line << " -> " << said;
        ASSERT_EQ(reader->size(), said.size()) << line << " -> " << said;
      }
}

TEST(Memcached, SaysNothingToNoreply) {
  const test::Memcached server;
  const std::string rows[] = {
      "set k 0 0 1 noreply\r\nx\r\n",
      "add k 0 0 1 noreply\r\nx\r\n",
      "cas k 0 0 1 1 noreply\r\nx\r\n",
      "delete none noreply\r\n",
      "delete k 1 noreply\r\n",
      "incr k x noreply\r\n",
      "incr none 1 noreply\r\n",
      "touch k x noreply\r\n",
      "set k 0 0 2000000 noreply\r\n" + std::string(2'000'000, 'x') + "\r\n",
  };
  for (const auto& row : rows) {
    auto asked = ask(row);
    ASSERT_EQ(asked.plan.route, Route::one) << row.substr(0, 40);
    EXPECT_FALSE(asked.plan.expects_reply) << row.substr(0, 40);
    EXPECT_EQ(said_by(server, row), "") << row.substr(0, 40);
  }
}

}  // namespace
}  // namespace sluice::proxy
