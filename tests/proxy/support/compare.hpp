/// Holds a strict plan against what a running nutcracker does with the same bytes: before them a
/// read, whose reply is lost if twemproxy drops what is pending, and behind them another, which
/// tells that the connection goes on.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "proxy/protocol/protocol.hpp"
#include "proxy/support/listening.hpp"

namespace sluice::proxy {

struct Reading {
  std::string request, reply;
};

inline void expect_like_twemproxy(Protocol& protocol, std::uint16_t nutcracker,
                                  const std::string& bytes, const Reading& before,
                                  const Reading& behind) {
  const auto reader = protocol.request_reader();
  const auto state = reader->read(bytes);
  ASSERT_NE(state, RequestReader::State::incomplete) << bytes;
  Plan plan{.route = Route::close, .drop_pending = true};
  if (state == RequestReader::State::complete) plan = protocol.plan(reader->words());
  const bool closes = plan.route == Route::close;
  const bool ends_kindly = closes && !plan.drop_pending;
  const auto said =
      test::talk(nutcracker, before.request + bytes + (ends_kindly ? "" : behind.request),
                 closes ? "" : behind.reply);
  ASSERT_EQ(said.closed, closes) << bytes << " -> " << said.bytes;
  if (closes) {
    EXPECT_EQ(said.bytes, ends_kindly ? before.reply : "") << bytes;
  } else if (plan.route == Route::local || plan.verb == SessionVerb::auth) {
    EXPECT_EQ(said.bytes, before.reply + std::string{plan.reply} + behind.reply) << bytes;
  } else {
    EXPECT_NE(plan.route, Route::refused) << bytes;
    EXPECT_TRUE(said.bytes.starts_with(before.reply)) << bytes;
    EXPECT_EQ(said.bytes.size() > before.reply.size() + behind.reply.size(), plan.expects_reply)
        << bytes;
  }
}

}  // namespace sluice::proxy
