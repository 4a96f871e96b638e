/// What the configuration file of the proxy says, read, checked and with its defaults: a value, which running pools
/// share and a reload replaces as a whole. The table of all settings is settings.def.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/endpoint.hpp"
#include "proxy/hash/hash.hpp"
#include "proxy/ring/ring.hpp"

namespace sluice::proxy {

enum class Compat : std::uint8_t {
  relaxed,  ///< what twemproxy does not know is answered, with the result or with -ERR
  strict,   ///< closes the connection where twemproxy does, and offers what it offers
};

/// What becomes of the keys of a server that fails.
enum class OnFailure : std::uint8_t {
  rehash,  ///< they move to the others (twemproxy; only with auto_eject_hosts)
  fail,    ///< they get an error at once, and stay where they are
};

struct Listen {
  net::Endpoint endpoint;
  std::optional<unsigned> permissions;  ///< of a unix socket
  std::string text;                     ///< as written; unique in a file
};

struct ServerSettings {
  net::Endpoint endpoint;
  std::string
      name;  ///< given, else host:port, else (port 11211) the host; what is hashed, and the name in statistics
  std::uint32_t weight = 1;
  std::size_t position = 0;  ///< place in the file
};

struct TlsSettings {
  bool on = false;
  std::string certificate, key, authorities;  ///< files; PEM
  bool verify = true;  ///< of the peer: servers always have one; clients only with `authorities`
  std::string server_name;  ///< towards servers: what their certificate must name; empty: the host
};

struct UserSettings {
  std::string name, password;
  bool read_only = false;
};

struct PoolSettings {
  std::string name;
  Listen listen;
  Hash hash = Hash::fnv1a_64;
  std::optional<HashTag> hash_tag;
  Distribution distribution = Distribution::ketama;
  std::optional<std::chrono::milliseconds> timeout;  ///< none: for ever
  int backlog = 512;
  std::size_t client_connections = 0;  ///< 0: what the limit of open files leaves
  bool tcpkeepalive = false;
  bool reuseport = false;
  bool preconnect = false;
  bool redis = false;  ///< false: memcached
  std::string redis_auth;
  int redis_db = 0;
  std::size_t server_connections = 1;
  bool auto_eject_hosts = false;
  std::chrono::milliseconds server_retry_timeout{30000};
  std::size_t server_failure_limit = 2;
  std::vector<ServerSettings>
      servers;  ///< sorted as twemproxy sorts them: by length of the name, then by its bytes

  // Beyond twemproxy.
  Compat compat = Compat::relaxed;
  OnFailure on_failure = OnFailure::rehash;
  bool health_check =
      true;  ///< an ejected server comes back only after it has answered a PING (strict: not asked)
  bool partial_replies =
      false;                 ///< MGET: an error for each key whose server failed, not for the whole
  bool retry_reads = false;  ///< a read whose connection broke is asked once more
  TlsSettings listen_tls, server_tls;
  std::vector<UserSettings> users;
  std::string
      server_user;  ///< AUTH USER PASSWORD towards servers; with server_password (default redis_auth)
  std::string server_password;
  std::vector<std::string>
      allow;  ///< commands for all servers or dangerous ones that are let through: "flushall", "dbsize"
  std::size_t request_size_limit = std::size_t{512} << 20;
  std::size_t request_words_limit = 1 << 20;
  std::size_t reply_size_limit = std::size_t{1} << 30;
  std::size_t client_output_limit = std::size_t{64}
                                    << 20;           ///< beyond it a client's requests are not read
  std::size_t client_pending_limit = 65536;          ///< requests of one client that are under way
  std::chrono::milliseconds client_idle_timeout{0};  ///< 0: never
  std::chrono::milliseconds resolve_interval{
      30000};  ///< how often the names of servers are asked again
  std::chrono::milliseconds connect_timeout{1000};
  std::string key_bytes =
      "x86";  ///< how bytes above 0x7f are hashed: as twemproxy on "x86" (signed) or "arm" (unsigned)

  std::size_t line = 0;  ///< of the file, for messages
};

/// What is of the whole process: the map `sluice:` of the file.
struct ProcessSettings {
  std::size_t workers = 1;
  std::size_t memory_limit = 0;  ///< bytes of buffers in all; 0: none
  std::string metrics;           ///< host:port of /metrics; empty: off
  std::string admin;             ///< host:port or /path of the administrative endpoint; empty: off
  std::chrono::milliseconds drain_timeout{30000};
  std::chrono::microseconds slow_log_threshold{10000};
  std::size_t slow_log_entries = 128;
  bool hot_keys = false;
  std::size_t big_value = std::size_t{1} << 20;  ///< values of so many bytes are noted
};

struct Config {
  ProcessSettings process;
  std::vector<PoolSettings> pools;
};

}  // namespace sluice::proxy
