#include "port/redis_conf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/integer.hpp"
#include "engine/core/events.hpp"
#include "resp/letters.hpp"
#include "resp/request_parser.hpp"
#include "sluice/error.hpp"

namespace sluice::port {
namespace {

using resp::is_word;
using Line = std::vector<std::string_view>;

/// What the lines say together.
struct Reading {
  PortConf& conf;
  std::vector<std::string> bind{"127.0.0.1"};
  std::optional<std::uint16_t> port, tls_port;
  bool appends = true;
};

[[noreturn]] void refuse(std::string_view why) {
  throw Error{Errc::bad_argument, std::string{why}};
}

std::int64_t number(std::string_view word, std::int64_t least, std::int64_t most) {
  const auto value = parse_integer<std::int64_t>(word);
  if (!value || *value < least || *value > most)
    refuse(fmt::format("'{}' is no number from {} to {}", word, least, most));
  return *value;
}

bool yes(std::string_view word) {
  if (is_word(word, "yes")) return true;
  if (!is_word(word, "no")) refuse(fmt::format("'{}' is neither yes nor no", word));
  return false;
}

/// "64mb": as Redis counts, 1k is 1000 bytes and 1kb is 1024.
std::uint64_t bytes(std::string_view word) {
  static constexpr std::pair<std::string_view, std::uint64_t> units[] = {{"kb", 1ULL << 10},
                                                                         {"mb", 1ULL << 20},
                                                                         {"gb", 1ULL << 30},
                                                                         {"k", 1000},
                                                                         {"m", 1'000'000},
                                                                         {"g", 1'000'000'000},
                                                                         {"b", 1}};
  const auto digits = word.substr(0, word.find_first_not_of("0123456789"));
  const auto count = parse_integer<std::uint64_t>(digits);
  const auto rest = word.substr(digits.size());
  const auto unit =
      std::ranges::find_if(units, [&](const auto& each) { return is_word(rest, each.first); });
  const std::uint64_t factor = rest.empty() ? 1 : unit == std::end(units) ? 0 : unit->second;
  if (!count || factor == 0 || *count > std::numeric_limits<std::int64_t>::max() / factor)
    refuse(fmt::format("'{}' is no size, like 64mb", word));
  return *count * factor;
}

engine::Fsync fsync(std::string_view word) {
  if (is_word(word, "always")) return engine::Fsync::always;
  if (is_word(word, "everysec")) return engine::Fsync::everysec;
  if (!is_word(word, "no")) refuse(fmt::format("'{}' is none of always, everysec, no", word));
  return engine::Fsync::never;
}

void save(Reading&, const Line& words) {
  if (words.size() == 2 && words[1].empty()) return;
  refuse(
      "the engine writes no snapshots: each change goes to its log. Write: save \"\", and "
      "appendonly yes");
}

void users_of_file(Reading& reading, const Line& words) {
  std::ifstream file{std::string{words[1]}};
  if (!file) refuse(fmt::format("the aclfile '{}' cannot be read", words[1]));
  for (std::string line; std::getline(file, line);) {
    std::istringstream in{line};
    std::string first;
    if (!(in >> first)) continue;
    if (first != "user")
      refuse(fmt::format("{}: a line begins with '{}', not with user", words[1], first));
    std::string rest;
    std::getline(in, rest);
    reading.conf.port.users.push_back(rest);
  }
}

void user(Reading& reading, const Line& words) {
  std::string line;
  for (std::size_t at = 1; at < words.size(); ++at) line.append(words[at]).append(" ");
  reading.conf.port.users.push_back(line);
}

void bind(Reading& reading, const Line& words) {
  reading.bind.clear();
  for (auto address : words) {
    if (address.data() == words[0].data()) continue;
    if (address.starts_with('-')) address.remove_prefix(1);
    reading.bind.emplace_back(address == "*" ? "0.0.0.0" : address);
  }
}

void maxmemory(Reading&, const Line& words) {
  if (bytes(words[1]) != 0)
    refuse(
        "the engine evicts no keys: give the keys times to live, or bound the memory of the "
        "process from outside");
}

void output_limit(Reading& reading, const Line& words) {
  if (words.size() % 4 != 1)
    refuse("'client-output-buffer-limit' takes four words: CLASS HARD SOFT SECONDS");
  for (std::size_t at = 1; at < words.size(); at += 4) {
    const OutputLimit limit{.hard = bytes(words[at + 1]),
                            .soft = bytes(words[at + 2]),
                            .patience = std::chrono::seconds{number(words[at + 3], 0, 1 << 30)}};
    if (is_word(words[at], "normal"))
      reading.conf.port.of_clients = limit;
    else if (is_word(words[at], "pubsub"))
      reading.conf.port.of_listeners = limit;
    else if (!is_word(words[at], "replica") && !is_word(words[at], "slave"))
      refuse(fmt::format("'{}' is no class of clients: normal, pubsub, replica", words[at]));
  }
}

/// Refuses any value but the one that the engine has anyway.
template <std::size_t size>
void only(const Line& words, const char (&value)[size], std::string_view why) {
  if (words.size() != 2 || !is_word(words[1], value)) refuse(why);
}

struct Row {
  std::string_view name;
  std::size_t words;  ///< behind it; 0: any number
  void (*take)(Reading&, const Line&);
};
constexpr Row rows[] = {
    {"aclfile", 1, users_of_file},
    {"appendfsync", 1,
     [](Reading& to, const Line& words) { to.conf.engine.fsync = fsync(words[1]); }},
    {"appendonly", 1, [](Reading& to, const Line& words) { to.appends = yes(words[1]); }},
    {"auto-aof-rewrite-min-size", 1,
     [](Reading& to, const Line& words) { to.conf.engine.rewrite_above_bytes = bytes(words[1]); }},
    {"auto-aof-rewrite-percentage", 1,
     [](Reading& to, const Line& words) {
       to.conf.engine.rewrite_growth_percent = static_cast<unsigned>(number(words[1], 0, 100'000));
     }},
    {"bind", 0, bind},
    {"client-output-buffer-limit", 0, output_limit},
    {"cluster-enabled", 1,
     [](Reading&, const Line& words) {
       only(words, "no", "the engine is one server, and no node of a cluster");
     }},
    {"databases", 1, [](Reading&, const Line& words) { number(words[1], 1, 16); }},
    {"dir", 1, [](Reading& to, const Line& words) { to.conf.folder = words[1]; }},
    {"io-threads", 1,
     [](Reading& to, const Line& words) {
       to.conf.port.threads = static_cast<std::size_t>(number(words[1], 1, 128));
     }},
    {"maxclients", 1,
     [](Reading& to, const Line& words) {
       to.conf.port.most_clients = static_cast<std::size_t>(number(words[1], 1, 1'000'000));
     }},
    {"maxmemory", 1, maxmemory},
    {"maxmemory-policy", 1,
     [](Reading&, const Line& words) {
       only(words, "noeviction", "the engine evicts no keys: write noeviction");
     }},
    {"notify-keyspace-events", 1,
     [](Reading& to, const Line& words) {
       const auto kinds = engine::read_event_kinds(words[1]);
       if (!kinds) refuse(fmt::format("'{}': the letters are Ag$lshzxeKEtmdn", words[1]));
       to.conf.port.notified_events = *kinds;
     }},
    {"port", 1,
     [](Reading& to, const Line& words) {
       to.port = static_cast<std::uint16_t>(number(words[1], 0, 65535));
     }},
    {"proto-max-bulk-len", 1,
     [](Reading& to, const Line& words) {
       to.conf.port.longest_word = std::clamp<std::uint64_t>(bytes(words[1]), 1 << 20, 512 << 20);
     }},
    {"protected-mode", 1,
     [](Reading& to, const Line& words) { to.conf.port.is_protected = yes(words[1]); }},
    {"replicaof", 0,
     [](Reading&, const Line&) { refuse("the engine is no replica: sluice engine load copies"); }},
    {"requirepass", 1, [](Reading& to, const Line& words) { to.conf.port.password = words[1]; }},
    {"save", 0, save},
    {"slaveof", 0,
     [](Reading&, const Line&) { refuse("the engine is no replica: sluice engine load copies"); }},
    {"timeout", 1,
     [](Reading& to, const Line& words) {
       to.conf.port.idle_timeout = std::chrono::seconds{number(words[1], 0, 1 << 30)};
     }},
    {"tls-auth-clients", 1,
     [](Reading& to, const Line& words) {
       if (is_word(words[1], "optional"))
         refuse("a certificate of clients is asked for, or it is not: write yes or no");
       to.conf.port.asks_for_certificate = yes(words[1]);
     }},
    {"tls-ca-cert-dir", 1, [](Reading& to, const Line& words) { to.conf.port.tls.ca = words[1]; }},
    {"tls-ca-cert-file", 1, [](Reading& to, const Line& words) { to.conf.port.tls.ca = words[1]; }},
    {"tls-cert-file", 1,
     [](Reading& to, const Line& words) { to.conf.port.tls.certificate = words[1]; }},
    {"tls-key-file", 1, [](Reading& to, const Line& words) { to.conf.port.tls.key = words[1]; }},
    {"tls-port", 1,
     [](Reading& to, const Line& words) {
       to.tls_port = static_cast<std::uint16_t>(number(words[1], 0, 65535));
     }},
    {"unixsocket", 1,
     [](Reading& to, const Line& words) {
       to.conf.port.listen.push_back({{.host = "", .port = 0, .unix_path = std::string{words[1]}}});
     }},
    {"user", 0, user},
    {"unixsocketperm", 1,
     [](Reading& to, const Line& words) {
       const auto mode = parse_integer<unsigned>(words[1], 8);
       if (!mode || *mode > 0777) refuse(fmt::format("'{}' is no mode, like 700", words[1]));
       to.conf.port.unix_permissions = *mode;
     }},
};

/// Redis has them, and here they change nothing that a client relies on.
constexpr std::string_view without_effect[] = {"slowlog-log-slower-than",
                                               "slowlog-max-len",
                                               "activedefrag",
                                               "activerehashing",
                                               "always-show-logo",
                                               "aof-load-truncated",
                                               "aof-rewrite-incremental-fsync",
                                               "aof-timestamp-enabled",
                                               "aof-use-rdb-preamble",
                                               "appenddirname",
                                               "appendfilename",
                                               "daemonize",
                                               "dbfilename",
                                               "dynamic-hz",
                                               "io-threads-do-reads",
                                               "hash-max-listpack-entries",
                                               "hash-max-listpack-value",
                                               "hll-sparse-max-bytes",
                                               "hz",
                                               "jemalloc-bg-thread",
                                               "latency-monitor-threshold",
                                               "latency-tracking",
                                               "list-compress-depth",
                                               "list-max-listpack-size",
                                               "logfile",
                                               "loglevel",
                                               "no-appendfsync-on-rewrite",
                                               "oom-score-adj",
                                               "oom-score-adj-values",
                                               "pidfile",
                                               "rdb-del-sync-files",
                                               "rdb-save-incremental-fsync",
                                               "rdbchecksum",
                                               "rdbcompression",
                                               "repl-backlog-size",
                                               "repl-disable-tcp-nodelay",
                                               "repl-diskless-load",
                                               "repl-diskless-sync",
                                               "repl-diskless-sync-delay",
                                               "repl-diskless-sync-max-replicas",
                                               "replica-lazy-flush",
                                               "replica-priority",
                                               "replica-read-only",
                                               "replica-serve-stale-data",
                                               "set-max-intset-entries",
                                               "set-proc-title",
                                               "proc-title-template",
                                               "stop-writes-on-bgsave-error",
                                               "stream-node-max-bytes",
                                               "stream-node-max-entries",
                                               "supervised",
                                               "syslog-enabled",
                                               "tcp-backlog",
                                               "tcp-keepalive",
                                               "zset-max-listpack-entries",
                                               "zset-max-listpack-value",
                                               "lazyfree-lazy-eviction",
                                               "lazyfree-lazy-expire",
                                               "lazyfree-lazy-server-del",
                                               "lazyfree-lazy-user-del",
                                               "lazyfree-lazy-user-flush",
                                               "disable-thp",
                                               "crash-log-enabled",
                                               "acllog-max-len",
                                               "acl-pubsub-default",
                                               "ignore-warnings"};

void take(Reading& reading, const Line& words, std::string_view place) {
  const auto row =
      std::ranges::find_if(rows, [&](const Row& each) { return is_word(words[0], each.name); });
  if (row != std::end(rows)) {
    if (row->words != 0 && words.size() != row->words + 1)
      refuse(fmt::format("'{}' takes one word", words[0]));
    return row->take(reading, words);
  }
  const bool is_idle = std::ranges::any_of(
      without_effect, [&](std::string_view name) { return is_word(words[0], name); });
  reading.conf.remarks.push_back(
      fmt::format("{}: '{}' {}", place, words[0].substr(0, 64),
                  is_idle ? "has no effect here" : "is not known, and has no effect"));
}

}  // namespace

void read_redis_conf(std::string_view text, const std::string& name, PortConf& conf) {
  Reading reading{.conf = conf};
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto place = fmt::format("{}:{}", name, number);
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') continue;
    std::string buffer;
    Line words;
    try {
      if (!resp::split_inline(line.substr(begin), buffer, words)) refuse("a quote is not closed");
      if (!words.empty()) take(reading, words, place);
    } catch (const Error& error) {
      throw Error{Errc::bad_argument, fmt::format("{}: {}", place, error.message())};
    }
  }
  for (const auto& address : reading.bind) {
    if (const auto port = reading.port.value_or(6379); port != 0 || !reading.port)
      conf.port.listen.push_back({{.host = address, .port = port, .unix_path = {}}});
    if (reading.tls_port.value_or(0) != 0)
      conf.port.listen.push_back(
          {{.host = address, .port = *reading.tls_port, .unix_path = {}}, true});
  }
  conf.engine.path = reading.appends ? conf.folder : "";
}

}  // namespace sluice::port
