/// The Store of one Redis or Valkey server.
///
///     RedisStore ── shares with its calls ──> Client ── owns ──> Reactor (the background thread)
///                                               │                  └── ticks ──> every Link
///                                               ├── shared Link: all calls
///                                               ├── listener Link: all subscriptions
///                                               ├── lent Links: one for each blocking command
///                                               ├── DurableLines: batches that end with WAIT
///                                               ├── Channels: the handlers
///                                               └── Callbacks: where the users' handlers run
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/endpoint.hpp"
#include "net/tls_client.hpp"
#include "sluice/store.hpp"

namespace sluice::redis {

class MovingEndpoint;

/// What a server says it is (HELLO).
enum class ServerKind : std::uint8_t { alone, cluster_node, sentinel };

/// How a client behaves towards one server.
struct RedisOptions {
  net::Endpoint endpoint;
  /// Not null: it is there, and not at `endpoint`, and has to be a master.
  std::shared_ptr<MovingEndpoint> moving = {};
  /// What its certificate bears, where that is not the endpoint's host; empty: that.
  std::string verified_as = {};
  /// Another one is refused.
  ServerKind kind = ServerKind::alone;
  /// Of a cluster: it is a replica that is to be read from (READONLY).
  bool is_replica = false;
  /// Null: what is said is not encrypted.
  std::shared_ptr<net::TlsClient> tls = {};
  /// Empty with a password: the server's user "default".
  std::string user;
  std::string password;
  int database = 0;
  /// What CLIENT LIST shows. Empty: nothing.
  std::string name;

  /// From the first packet to the end of the greeting, for each attempt.
  std::chrono::milliseconds connect_timeout{3000};
  /// The same for the first attempt, which the caller of open() waits for; the shorter one counts.
  std::chrono::milliseconds open_timeout = std::chrono::milliseconds::max();
  /// How long a call waits for its reply, and for a connection. More: survives a slower server or a
  /// longer restart; less: the caller hears of trouble sooner.
  std::chrono::milliseconds command_timeout{3000};
  /// With subscriptions: a connection that was silent for this long is asked whether it lives.
  /// Less: a lost one is noticed sooner, at the price of a command each time. Without subscriptions
  /// nothing is sent.
  std::chrono::milliseconds idle{30'000};
  /// The pause before connecting again doubles from `backoff_min` to `backoff_max`, and each is
  /// shortened by a random part of up to a half, so that many clients do not come back at once.
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{1000};

  /// How long a waiting thread looks for its reply before it sleeps. 20 to 50 µs more than halve
  /// the time of a call on a near server, for the CPU of one core while a call is under way. Given
  /// up for a while when it does not pay.
  std::chrono::microseconds spin{0};

  /// With Sentinels, and in a cluster: replicas that are no further behind are read from, by calls
  /// that say so (CallOptions::read_from). Empty: none is. More: the calls see older data, and
  /// servers are asked less often.
  std::optional<std::chrono::milliseconds> replica_max_lag = {};

  /// Calls that wait for a reply or a connection. More are refused (effect none).
  std::size_t most_calls = 1 << 20;
  /// Bytes of calls that wait to be sent. More are refused (effect none).
  std::size_t most_bytes = std::size_t{1} << 30;
  /// Connections for blocking commands, opened when needed. One more blocking command at once waits
  /// until one of them has ended.
  std::size_t most_blocking = 64;
  /// Where callbacks run; empty: on a thread of the Store's own.
  Executor executor = {};
};

/// "redis://host:port/0", "rediss://..." with TLS: what messages call the server; without user and
/// password.
std::string describe(const RedisOptions& options);

/// Connects, and returns when the server has greeted. Throws Error{connection | timeout |
/// authentication | server}. Afterwards a lost connection is made again by itself.
std::unique_ptr<Store> open_redis(RedisOptions options);

}  // namespace sluice::redis
