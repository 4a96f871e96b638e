/// What the client's tests share.
#pragma once

#include <gtest/gtest.h>

#include "redis/redis_store.hpp"
#include "sluice/metrics.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

/// Options for a server of this test, with a quick return after trouble, and with time enough for
/// what is to succeed: a machine may be slow.
inline redis::RedisOptions at(const RedisServer& server) {
  redis::RedisOptions options;
  if (server.port() == 0) options.endpoint.unix_path = server.socket_path();
  options.endpoint.host = "127.0.0.1";
  options.endpoint.port = server.port();
  options.connect_timeout = options.command_timeout = std::chrono::seconds{30};
  options.backoff_min = std::chrono::milliseconds{2};
  options.backoff_max = std::chrono::milliseconds{50};
  return options;
}

/// The Error that `body` throws; a test failure and Effect::done when it throws none.
template <class Body>
Error failure_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error{Errc::server, "nothing was thrown", Effect::done};
}

}  // namespace sluice::test
