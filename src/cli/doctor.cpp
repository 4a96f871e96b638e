/// `sluice doctor URL`: what is dangerous about a store, for programs that trust it with locks,
/// numbers and stock.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/output.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {
namespace {

enum class Severity { ok, warning, danger, unknown };

struct Finding {
  std::string check;
  Severity severity;
  std::string found;
  std::string advice;  ///< empty when all is well
};

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::warning: return "warning";
    case Severity::danger: return "danger";
    case Severity::unknown: return "unknown";
  }
  return "unknown";
}

/// "name:value" lines of INFO.
std::map<std::string, std::string> parse_info(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find_first_of("\r\n", at), text.size());
    const auto line = text.substr(at, end - at);
    if (const auto colon = line.find(':'); colon != std::string::npos)
      fields[line.substr(0, colon)] = line.substr(colon + 1);
    at = end + 1;
  }
  return fields;
}

class Examination {
 public:
  Examination(Store& store, std::string url) : store_(store), url_(std::move(url)) {}

  std::vector<Finding> run() {
    if (url_.starts_with("embedded:")) {
      embedded();
    } else {
      server();
    }
    write_by_script();
    messages();
    attempt("clock", [this] { clock(); });
    return std::move(findings_);
  }

 private:
  void server() {
    try {
      info_ = parse_info(store_.run({"INFO"}).get().as_text());
    } catch (const Error& error) {
      if (error.errc() == Errc::authentication)
        return add("server", Severity::unknown, "this user may not run INFO",
                   "ask as a user who may run INFO and CONFIG GET");
      return add("server", Severity::danger, error.message(),
                 "what kind of server this is cannot be told: find out who answers there");
    }
    version();
    cluster();
    attempt("eviction", [this] { eviction(); });
    attempt("persistence", [this] { persistence(); });
    attempt("replicas", [this] { replicas(); });
    role();
  }

  /// What was found before is told, whatever the server answers to this.
  template <class Check>
  void attempt(const std::string& name, Check check) try {
    check();
  } catch (const Error& error) {
    add(name, Severity::danger, error.message(),
        error.errc() == Errc::authentication
            ? "the users of locks, numbers and sales need this, too"
            : "this is no server, line or proxy to trust: find out who answers there");
  }

  /// How an embedded store is kept stands in its URL; it has no CONFIG SET.
  void embedded() {
    if (url_ == "embedded:" || url_.starts_with("embedded:?"))
      return add("persistence", Severity::danger, "in the memory of this process",
                 "no other process shares it, and it ends with the process: use embedded:/FOLDER");
    const auto at = url_.find("fsync=");
    const std::string fsync =
        at == std::string::npos ? "always" : url_.substr(at + 6, url_.find('&', at) - at - 6);
    const std::string found = "in a folder, fsync " + fsync;
    if (fsync == "never")
      return add("persistence", Severity::warning, found,
                 "a power failure loses what the kernel had not written: fsync=everysec or always");
    add("persistence", Severity::ok, found);
  }

  /// As every primitive does. It fails for missing permissions and replicas, full memory and disks.
  void write_by_script() {
    const std::string key = "sluice:doctor:" + random_hex_128();
    try {
      store_
          .run({"EVAL", "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)", "1", key, "here"})
          .get();
      const Value found = store_.run({"GET", key}).get();
      store_.run({"DEL", key}).get();
      const bool same = found.is_text() && found.as_text() == "here";
      add("write", same ? Severity::ok : Severity::danger,
          same ? "a script wrote a key" : "a script wrote a key, but it is not there",
          same ? "" : "another program removes keys, or memory is too short to keep them");
    } catch (const Error& error) {
      add("write", Severity::danger, error.message(), "no lock, number or sale works like this");
    }
  }

  void messages() {
    const std::string channel = "sluice:doctor:" + random_hex_128();
    try {
      const auto listener = store_.listen(channel, [](const Message&) {}).get();
      store_.run({"PUBLISH", channel, "hello"}).get();
      add("messages", Severity::ok, "a channel can be heard");
    } catch (const Error& error) {
      add("messages", Severity::danger, error.message(),
          "waiters need PUBLISH and SUBSCRIBE on every channel: ACL SETUSER ... allchannels");
    }
  }

  void cluster() {
    if (info("cluster_enabled") == "1")
      add("cluster", Severity::danger, "this is a node of a cluster",
          "Sluice speaks with one server, and this one has a part of the keys: use another");
  }

  std::string info(const std::string& field) const {
    const auto found = info_.find(field);
    return found == info_.end() ? std::string{} : found->second;
  }

  /// Empty: the server does not let this user see it.
  std::optional<std::string> config(std::string_view parameter) {
    try {
      const Value reply = store_.run({"CONFIG", "GET", parameter}).get();
      const auto& items = reply.as_items();
      if (items.size() == 2) return items[1].as_text();
    } catch (const Error& error) {
      if (error.errc() != Errc::authentication && error.errc() != Errc::server) throw;
    }
    return std::nullopt;
  }

  void add(std::string check, Severity severity, std::string found, std::string advice = {}) {
    findings_.push_back({std::move(check), severity, std::move(found), std::move(advice)});
  }
  void cannot_tell(std::string check, std::string_view parameter) {
    add(std::move(check), Severity::unknown,
        fmt::format("CONFIG GET {} is not answered", parameter),
        "ask as a user who may run CONFIG GET");
  }

  void version() {
    const std::string version = info("redis_version");
    const int major = std::atoi(version.c_str());
    if (major >= 6) return add("version", Severity::ok, version);
    add("version", Severity::danger, version.empty() ? "not told" : version,
        "Redis 6 or Valkey 7.2 and later speak RESP3, which is needed");
  }

  void eviction() {
    const auto policy = config("maxmemory-policy");
    if (!policy) return cannot_tell("eviction", "maxmemory-policy");
    const auto limit = config("maxmemory").value_or("0");
    const std::string found = fmt::format("maxmemory {}, maxmemory-policy {}", limit, *policy);
    if (policy->starts_with("allkeys-"))
      return add("eviction", limit == "0" ? Severity::warning : Severity::danger, found,
                 "locks, counters and stock may be evicted when memory is short: CONFIG SET "
                 "maxmemory-policy noeviction, and keep caches in another server");
    if (policy->starts_with("volatile-"))
      return add("eviction", Severity::warning, found,
                 "keys with a TTL (locks, day counters) may be evicted when memory is short: "
                 "prefer noeviction");
    add("eviction", Severity::ok, found);
  }

  void persistence() {
    const auto append_only = config("appendonly");
    if (!append_only) return cannot_tell("persistence", "appendonly");
    const std::string fsync = config("appendfsync").value_or("?");
    const std::string save = config("save").value_or("");
    if (*append_only == "yes") {
      const std::string found = "appendonly yes, appendfsync " + fsync;
      if (fsync == "no")
        return add("persistence", Severity::warning, found,
                   "a power failure loses what the kernel had not written: appendfsync everysec or "
                   "always");
      return add("persistence", Severity::ok, found);
    }
    if (!save.empty())
      return add("persistence", Severity::warning, fmt::format("appendonly no, save '{}'", save),
                 "a crash gives back an older state, so numbers may come twice: CONFIG SET "
                 "appendonly yes");
    add("persistence", Severity::danger, "appendonly no, save ''",
        "a restart forgets every counter, lock and sale: CONFIG SET appendonly yes");
  }

  void replicas() {
    const int connected = std::atoi(info("connected_slaves").c_str());
    const auto needed = config("min-replicas-to-write");
    if (connected > 0 && !needed) return cannot_tell("replicas", "min-replicas-to-write");
    const int least = std::atoi(needed.value_or("0").c_str());
    const std::string found =
        fmt::format("{} connected, min-replicas-to-write {}", connected, least);
    if (least > connected)
      return add("replicas", Severity::danger, found,
                 "every write is refused (NOREPLICAS) until so many replicas are connected");
    if (connected > 0 && least == 0)
      return add("replicas", Severity::danger, found,
                 "a primary that is cut off goes on granting what its successor grants too: set "
                 "min-replicas-to-write 1 and min-replicas-max-lag 10");
    add("replicas", Severity::ok, found);
  }

  void role() {
    const std::string role = info("role");
    if (role == "slave" || role == "replica")
      return add("role", Severity::danger, role,
                 "this is a replica, it takes no writes: give the URL of its primary");
    add("role", Severity::ok, role.empty() ? "master" : role);
  }

  void clock() {
    const auto sent = store_.clock().wall();
    const auto server = store_.time().get();
    const auto received = store_.clock().wall();
    // The server read its clock between the two; the smallest difference that this allows.
    const auto ahead = server > received ? server - received
                       : server < sent   ? server - sent
                                         : WallTime::duration{0};
    const double seconds = std::chrono::duration<double>(ahead).count();
    const std::string found = fmt::format("server is {:+.3f} s from this machine", seconds);
    if (std::abs(seconds) >= 1)
      return add("clock", Severity::warning, found,
                 "numbers, windows and ids follow the server's clock: set both by NTP, or expect "
                 "midnight there and not here");
    add("clock", Severity::ok, found);
  }

  Store& store_;
  const std::string url_;
  std::map<std::string, std::string> info_;
  std::vector<Finding> findings_;
};

int examine(const Globals& globals, const std::string& given) {
  const std::string url = given.empty() ? store_url(globals) : given;
  const auto store = open(url);
  const auto findings = Examination{*store, url}.run();
  bool danger = false;
  Json rows = Json::array();
  for (const auto& finding : findings) {
    danger |= finding.severity == Severity::danger;
    rows.add(Json::object({{"check", finding.check},
                           {"severity", name_of(finding.severity)},
                           {"found", finding.found},
                           {"advice", finding.advice}}));
    if (globals.json) continue;
    put("{:<8} {:<12} {}\n", name_of(finding.severity), finding.check, finding.found);
    if (!finding.advice.empty()) put("{:<21} -> {}\n", "", finding.advice);
  }
  if (globals.json)
    print(Json::object({{"ok", !danger}, {"store", store->describe()}, {"findings", rows}}));
  return danger ? exit_check_failed : exit_ok;
}

}  // namespace

Command doctor_command(const Globals& globals) {
  const auto url = std::make_shared<std::string>();
  return {
      .name = "doctor",
      .summary = "Tell what is dangerous about a store",
      .arguments = {{"URL", "The store to examine; else the one of --store", into(*url), false}},
      .action = [&globals, url] { return examine(globals, *url); }};
}

}  // namespace sluice::cli
