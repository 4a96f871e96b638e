#include "cli/doctor/server_checks.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace sluice::cli {

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

std::optional<std::string> config_of(Store& store, std::string_view parameter) {
  try {
    const Value reply = store.run({"CONFIG", "GET", parameter}).get();
    const auto& items = reply.as_items();
    if (items.size() == 2) return items[1].as_text();
  } catch (const Error& error) {
    if (error.errc() != Errc::authentication && error.errc() != Errc::server) throw;
  }
  return std::nullopt;
}

namespace {

class ServerChecks {
 public:
  ServerChecks(Store& store, Findings& findings) : store_(store), findings_(findings) {}

  void run() {
    try {
      info_ = parse_info(store_.run({"INFO"}).get().as_text());
    } catch (const Error& error) {
      if (error.errc() == Errc::authentication)
        return findings_.add("server", Severity::unknown, "this user may not run INFO",
                             "ask as a user who may run INFO and CONFIG GET");
      return findings_.add(
          "server", Severity::danger, error.message(),
          "what kind of server this is cannot be told: find out who answers there");
    }
    version();
    findings_.attempt("eviction", [this] { eviction(); });
    findings_.attempt("persistence", [this] { persistence(); });
    findings_.attempt("replicas", [this] { replicas(); });
    role();
  }

 private:
  std::string info(const std::string& field) const {
    const auto found = info_.find(field);
    return found == info_.end() ? std::string{} : found->second;
  }

  std::optional<std::string> config(std::string_view parameter) {
    return config_of(store_, parameter);
  }
  void cannot_tell(std::string check, std::string_view parameter) {
    findings_.add(std::move(check), Severity::unknown,
                  fmt::format("CONFIG GET {} is not answered", parameter),
                  "ask as a user who may run CONFIG GET");
  }

  void version() {
    const std::string version = info("redis_version");
    const int major = std::atoi(version.c_str());
    if (major >= 6) return findings_.add("version", Severity::ok, version);
    findings_.add("version", Severity::danger, version.empty() ? "not told" : version,
                  "Redis 6 or Valkey 7.2 and later speak RESP3, which is needed");
  }

  void eviction() {
    const auto policy = config("maxmemory-policy");
    if (!policy) return cannot_tell("eviction", "maxmemory-policy");
    const auto limit = config("maxmemory").value_or("0");
    const std::string found = fmt::format("maxmemory {}, maxmemory-policy {}", limit, *policy);
    if (policy->starts_with("allkeys-"))
      return findings_.add(
          "eviction", limit == "0" ? Severity::warning : Severity::danger, found,
          "locks, counters and stock may be evicted when memory is short: CONFIG SET "
          "maxmemory-policy noeviction, and keep caches in another server");
    if (policy->starts_with("volatile-"))
      return findings_.add(
          "eviction", Severity::warning, found,
          "keys with a TTL (locks, day counters) may be evicted when memory is short: "
          "prefer noeviction");
    findings_.add("eviction", Severity::ok, found);
  }

  void persistence() {
    const auto append_only = config("appendonly");
    if (!append_only) return cannot_tell("persistence", "appendonly");
    const std::string fsync = config("appendfsync").value_or("?");
    const std::string save = config("save").value_or("");
    if (*append_only == "yes") {
      const std::string found = "appendonly yes, appendfsync " + fsync;
      if (fsync == "no")
        return findings_.add(
            "persistence", Severity::warning, found,
            "a power failure loses what the kernel had not written: appendfsync everysec or "
            "always");
      return findings_.add("persistence", Severity::ok, found);
    }
    if (!save.empty())
      return findings_.add(
          "persistence", Severity::warning, fmt::format("appendonly no, save '{}'", save),
          "a crash gives back an older state, so numbers may come twice: CONFIG SET "
          "appendonly yes");
    findings_.add("persistence", Severity::danger, "appendonly no, save ''",
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
      return findings_.add(
          "replicas", Severity::danger, found,
          "every write is refused (NOREPLICAS) until so many replicas are connected");
    if (connected > 0 && least == 0)
      return findings_.add(
          "replicas", Severity::danger, found,
          "a primary that is cut off goes on granting what its successor grants too: set "
          "min-replicas-to-write 1 and min-replicas-max-lag 10");
    findings_.add("replicas", Severity::ok, found);
  }

  void role() {
    const std::string role = info("role");
    if (role == "slave" || role == "replica")
      return findings_.add("role", Severity::danger, role,
                           "this is a replica, it takes no writes: give the URL of its primary");
    findings_.add("role", Severity::ok, role.empty() ? "master" : role);
  }

  Store& store_;
  Findings& findings_;
  std::map<std::string, std::string> info_;
};

}  // namespace

void check_server(Store& store, Findings& findings) { ServerChecks{store, findings}.run(); }

}  // namespace sluice::cli
