/// What the configuration file says, with its defaults: a value that running pools share and a
/// reload replaces as a whole. These types are words of the whole proxy; how the file is read,
/// written and compared is namespace `config`. settings.def documents each member by its name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/endpoint.hpp"
#include "proxy/hash/hash.hpp"
#include "proxy/ring/ring.hpp"

namespace sluice::proxy {

/// Where something stands in the file, for messages. All are equal: moving a line is no change.
struct FilePlace {
  std::size_t line = 0;
  std::size_t position = 0;  ///< in its list

  constexpr bool operator==(const FilePlace&) const noexcept { return true; }
};

enum class Compat : std::uint8_t {
  relaxed,  ///< commands that twemproxy does not know are answered, with the result or with -ERR
  strict,   ///< the proxy offers what twemproxy offers, and closes where twemproxy closes
};

/// Where the keys of an ejected server go.
enum class OnFailure : std::uint8_t {
  rehash,  ///< to the other servers (twemproxy; only with auto_eject_hosts)
  fail,    ///< nowhere: their requests get an error at once
};

/// Who answers what only reads.
enum class ReadFrom : std::uint8_t {
  master,
  replica,  ///< of the master, while it is fresh enough
};

struct Listen {
  net::Endpoint endpoint;               ///< an empty host was made 0.0.0.0
  std::optional<unsigned> permissions;  ///< of a unix socket
  std::string text;                     ///< as written; unique in a file

  bool operator==(const Listen&) const = default;
};

struct ServerSettings {
  net::Endpoint endpoint;
  std::string name;  ///< hashed, and shown in statistics; config::name_of() where none is given
  std::uint32_t weight = 1;
  std::string text;  ///< as written, without the name
  FilePlace place;

  bool operator==(const ServerSettings&) const = default;
};

struct TlsSettings {
  bool on = false;
  std::string certificate, key, ca;  ///< files; PEM
  bool verify = true;
  std::string server_name;

  bool operator==(const TlsSettings&) const = default;
};

/// So many in each period, and at most `burst` at once. Of 0: no limit.
struct Rate {
  std::uint64_t amount = 0;
  std::chrono::seconds period{1};
  std::uint64_t burst = 0;

  bool holds() const noexcept { return amount != 0; }
  bool operator==(const Rate&) const = default;
};

/// What becomes of a request beyond its limit.
enum class LimitAction : std::uint8_t {
  refuse,  ///< an error
  delay,   ///< it waits for its turn
};

struct LimitSettings {
  std::optional<Rate> per_user, per_address, bytes_per_user, bytes_per_address;
  LimitAction action = LimitAction::refuse;

  bool operator==(const LimitSettings&) const = default;
};

/// A second pool that gets the writes of this one, too.
struct MirrorSettings {
  std::string pool;  ///< empty: none
  bool compare = true;
  bool reads = false;
  std::uint32_t sample = 1;  ///< one key in so many
  std::size_t queue = std::size_t{4} << 20;

  bool operator==(const MirrorSettings&) const = default;
};

struct UserSettings {
  std::string name, password;
  bool read_only = false;
  std::optional<Rate> rate, byte_rate;  ///< instead of those of rate_limit
  std::string acl;                      ///< empty: no word of it; see rights.hpp
  FilePlace place;

  bool operator==(const UserSettings&) const = default;
};

/// Whom AUTH with a password alone means.
inline constexpr std::string_view default_user = "default";

/// A command that no table knows: see command_rule.hpp.
struct CommandRule {
  std::string name;  ///< lower case; "json.*": all that begin so
  std::string text;  ///< "key 1 read"

  bool operator==(const CommandRule&) const = default;
};

struct PoolSettings;

/// The keys of a pool are on their way from one ring to another; see
/// docs/decisions/0020-keys-move-between-rings.md. Not in the file: a command begins and ends it.
struct RingMove {
  enum class Phase : std::uint8_t {
    held,    ///< the ring is the old one; requests with a key that moves wait
    moving,  ///< the ring is the new one; a key is fetched before it is asked for
  };
  /// Bytes of memory from which on a key is copied piece by piece: in one command it would stop its
  /// servers for longer than clients should notice.
  static constexpr std::int64_t large_key = std::int64_t{2} << 20;

  Phase phase;
  std::shared_ptr<const PoolSettings> other;  ///< of the ring to be, or of the one before
};

struct PoolSettings {
  std::string name;
  FilePlace place;

  Listen listen;
  Hash hash = Hash::fnv1a_64;
  std::optional<HashTag> hash_tag;
  Distribution distribution = Distribution::ketama;
  std::optional<std::chrono::milliseconds> timeout;
  int backlog = 512;
  std::size_t client_connections = 0;
  bool tcpkeepalive = false;
  bool reuseport = false;
  bool preconnect = false;
  bool redis = false;
  std::string redis_auth;
  int redis_db = 0;
  std::size_t server_connections = 1;
  bool auto_eject_hosts = false;
  std::chrono::milliseconds server_retry_timeout{30000};
  std::size_t server_failure_limit = 2;
  std::vector<ServerSettings> servers;  ///< in twemproxy's order: length of the name, then bytes

  // Beyond twemproxy.
  Compat compat = Compat::relaxed;
  OnFailure on_failure = OnFailure::rehash;
  bool health_check = true;
  bool partial_replies = false;
  bool retry_reads = false;
  TlsSettings listen_tls, server_tls;
  std::vector<UserSettings> users;
  std::string server_user;
  std::string server_password;
  std::vector<std::string> sentinels;       ///< host:port each; none: servers are where they say
  std::optional<TlsSettings> sentinel_tls;  ///< empty: as server_tls
  std::string sentinel_user;
  std::string sentinel_password;
  ReadFrom read_from = ReadFrom::master;
  std::chrono::milliseconds replica_max_lag{1000};
  bool read_your_writes = true;
  std::vector<std::string> cluster;  ///< host:port of some of its nodes; none: it is no cluster
  std::vector<std::string> allow;
  std::vector<CommandRule> commands;
  std::size_t request_size_limit = std::size_t{512} << 20;
  std::size_t request_words_limit = std::size_t{1} << 20;
  std::size_t reply_size_limit = std::size_t{1} << 30;
  std::size_t client_output_limit = std::size_t{64} << 20;
  std::size_t client_pending_limit = 65536;
  std::chrono::milliseconds client_idle_timeout{0};
  std::chrono::milliseconds resolve_interval{30000};
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds login_timeout{30000};
  std::size_t exclusive_connections = 4096;
  LimitSettings rate_limit;
  MirrorSettings mirror;
  CharSign key_bytes = CharSign::is_signed;

  std::shared_ptr<const RingMove> move;  ///< null: none; equal if it is the same one

  /// The servers are the nodes of a Redis Cluster, which tells who has which slot.
  bool is_of_cluster() const noexcept { return !cluster.empty(); }
  const TlsSettings& tls_to_sentinels() const noexcept {
    return sentinel_tls ? *sentinel_tls : server_tls;
  }
  /// Keys may be on different servers.
  bool spreads_keys() const noexcept { return servers.size() > 1 || is_of_cluster(); }
  /// What a server refuses without having done it is sent again, to the one that does it.
  bool sends_again() const noexcept {
    return is_of_cluster() || (!sentinels.empty() && compat == Compat::relaxed);
  }
  /// Clients have to say who they are before anything else.
  bool wants_login() const noexcept { return redis && (!redis_auth.empty() || !users.empty()); }
  /// Empty: there is none of this name. The default user has the password of redis_auth; where
  /// nobody has to log in it has none.
  std::optional<UserSettings> find_user(std::string_view wanted) const {
    for (const auto& user : users)
      if (user.name == wanted) return user;
    if (wanted != default_user || (redis_auth.empty() && !users.empty())) return std::nullopt;
    return UserSettings{.name = std::string{default_user}, .password = redis_auth};
  }

  bool operator==(const PoolSettings&) const = default;
};

/// The map `sluice:` of the file.
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

  bool operator==(const ProcessSettings&) const = default;
};

struct Config {
  ProcessSettings process;
  std::vector<PoolSettings> pools;  ///< in twemproxy's order: length of the name, then bytes

  bool operator==(const Config&) const = default;
};

/// The servers as the ring wants them, in the same order.
inline std::vector<RingServer> ring_servers(const PoolSettings& pool) {
  std::vector<RingServer> servers;
  servers.reserve(pool.servers.size());
  for (const auto& server : pool.servers) servers.push_back({server.name, server.weight});
  return servers;
}

/// `live`: the servers that take part, an index each; empty: all.
inline Homes make_homes(const PoolSettings& pool, std::span<const std::uint32_t> live = {}) {
  return {pool.hash, pool.key_bytes, pool.hash_tag,
          Ring{pool.distribution, ring_servers(pool), live}, pool.servers.size() == 1};
}

}  // namespace sluice::proxy
