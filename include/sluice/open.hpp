/// Turns a URL into a Store: the one place that knows all kinds of them.
///
/// ```text
/// embedded:                                   in memory, for this Store alone, gone with it: its
///                                             locks protect from no other process
/// embedded:/var/lib/app?fsync=everysec        in a folder; fsync = always (the default), everysec
///                                             or never; share=1: where `sluice engine serve` has
///                                             the folder, through its socket
/// redis://[user[:password]@]host[:port][/db]  a Redis or Valkey server; also valkey://
/// rediss://...                                the same over TLS; also valkeys://
/// redis+unix://[user[:password]@]/path/sock   the same on a unix socket; also valkey+unix://
/// redis+sentinel://[user[:password]@]h1,h2,h3/master[/db]
///                                             the master of this name, which Sentinels at these
///                                             hosts watch; also rediss+, valkey+, valkeys+
/// redis+cluster://[user[:password]@]h1,h2,h3  the Redis Cluster of these nodes, Redis 7 or newer;
///                                             also rediss+, valkey+, valkeys+
/// ```
///
/// Settings of a server: ?name=NAME (CLIENT SETNAME), db=N (the database, instead of /db),
/// timeout=3s (of a command), connect_timeout=3s, spin=50us. With Sentinels, too:
/// sentinel_user=USER and sentinel_password=PASSWORD of theirs, sentinel_tls=on or off where they
/// do otherwise than the servers; a '/' of the master's name is %2F. With Sentinels, and in a
/// cluster: read_from=replica, for calls that allow it, and replica_max_lag=1s. Over TLS, too:
/// tls_ca=FILE (or a folder), tls_certificate=FILE and tls_key=FILE of the client,
/// tls_server_name=NAME, tls_min_version=1.3, tls_expiry_warning=30d, tls_verify=none (the one way
/// to trust a server that cannot prove its name). Their files are read again when they change. An
/// IPv6 address stands in brackets; user, password, path and values may be percent-encoded. Times
/// are a number with us, ms, s, m, h or d, like 250ms or 1.5s; a bare number is milliseconds.
///
/// Threads: any. Processes: a child of fork() opens a Store of its own, calls of an inherited one
/// end with Error{closed}.
///
/// Commands of your own, `store->run(...)`, want sluice/store.hpp too.
///
///     auto store = sluice::open("redis://127.0.0.1:6379");
///     Mutex mutex{*store, "stock:42"};
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/clock.hpp"
#include "sluice/store_pointer.hpp"

namespace sluice {

enum class ReadFrom : std::uint8_t;

/// What a program sets itself rather than its user by the URL; what is set here wins over the URL.
struct OpenOptions {
  /// What the server's CLIENT LIST shows.
  std::optional<std::string> name = {};
  /// How long a call waits for its reply, and for a lost connection to come back. A verb with a
  /// wait may take so much longer where the server is silent. Default 3 s.
  std::optional<std::chrono::milliseconds> command_timeout = {};
  /// For connecting, with the server's greeting. Default 3 s.
  std::optional<std::chrono::milliseconds> connect_timeout = {};
  /// The most that open() itself waits for the server; connecting again later has the whole
  /// connect_timeout. Default: no less than that.
  std::optional<std::chrono::milliseconds> open_timeout = {};
  /// How long a waiting thread looks for the reply before it sleeps. Default 0; 20 to 50 µs halve
  /// the time of a call to a near server, and cost CPU meanwhile.
  std::optional<std::chrono::microseconds> spin = {};
  /// With Sentinels, and in a cluster: whether calls that allow it (CallOptions::read_from) are
  /// served by replicas. Default: by the master. Its values are in sluice/store.hpp.
  std::optional<ReadFrom> read_from = {};
  /// How far behind a replica may be that is read from; 100 ms at least. What was acknowledged
  /// longer ago is seen. More: replicas serve more of the calls, and are asked less often how far
  /// they are, four times in it, but twice a second at least. Default 1 s.
  std::optional<std::chrono::milliseconds> replica_max_lag = {};
  /// The clock of an embedded store; null: the machine's. A server has its own.
  Clock* clock = nullptr;
  /// Where the Store runs callbacks: on_lost of a lock, handlers of channels. Default: a thread of
  /// the Store's own, started for the first of them; with a `clock` at once. Several threads: a
  /// callback that takes long holds up no other. It is an Executor, see sluice/task.hpp.
  std::function<void(std::function<void()> work)> executor = {};
};

/// Opens the Store; a server is connected when this returns. Throws Error{bad_argument} for a URL
/// that it does not understand, and for files that it cannot use; {connection, timeout,
/// authentication, protocol} for a server that cannot be reached, refuses the user, or does not
/// show or take a certificate; {server} for a node of a cluster or a Sentinel, and where Sentinels
/// do not know the name; {in_use, corrupt} for a folder. Passwords appear in no message.
std::unique_ptr<Store> open(std::string_view url, const OpenOptions& options = {});

}  // namespace sluice
