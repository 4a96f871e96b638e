/// `sluice doctor URL`: what is dangerous about a store, for programs that trust it with locks,
/// numbers and stock.
#include <fmt/format.h>

#include <cmath>

#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/doctor/server_checks.hpp"
#include "cli/doctor/topology_checks.hpp"
#include "cli/output.hpp"
#include "cli/programs.hpp"
#include "open/servers.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {
namespace {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::warning: return "warning";
    case Severity::danger: return "danger";
    case Severity::unknown: return "unknown";
  }
  return "unknown";
}

class Examination {
 public:
  Examination(Servers servers, std::string url)
      : servers_(std::move(servers)), url_(std::move(url)) {}

  Findings run() {
    examine_servers();
    try {
      const auto store = open(url_);
      store_ = store.get();
      described_ = store->describe();
      examine_store();
    } catch (const Error& error) {
      if (servers_.kind() == Servers::Kind::alone) throw;
      add("open", Severity::danger, error.message(), "no program can use it like this");
    }
    return std::move(findings_);
  }
  /// Without a password; empty: it could not be opened.
  const std::string& store() const noexcept { return described_; }

 private:
  void examine_servers() {
    switch (servers_.kind()) {
      case Servers::Kind::sentinels: check_sentinels(servers_, findings_); break;
      case Servers::Kind::cluster: check_cluster(servers_, findings_); break;
      case Servers::Kind::alone: break;
    }
    check_certificates(servers_, findings_);
  }

  void examine_store() {
    if (servers_.kind() == Servers::Kind::alone) {
      if (url_.starts_with("embedded:"))
        embedded();
      else
        check_server(*store_, findings_);
    }
    write_by_script();
    messages();
    findings_.attempt("clock", [this] { clock(); });
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
          ->run(
              {"EVAL", "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)", "1", key, "here"})
          .get();
      const Value found = store_->run({"GET", key}).get();
      store_->run({"DEL", key}).get();
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
      const auto listener = store_->listen(channel, [](const Message&) {}).get();
      store_->run({"PUBLISH", channel, "hello"}).get();
      add("messages", Severity::ok, "a channel can be heard");
    } catch (const Error& error) {
      add("messages", Severity::danger, error.message(),
          "waiters need PUBLISH and SUBSCRIBE on every channel: ACL SETUSER ... allchannels");
    }
  }

  void add(std::string check, Severity severity, std::string found, std::string advice = {}) {
    findings_.add(std::move(check), severity, std::move(found), std::move(advice));
  }

  void clock() {
    const auto sent = store_->clock().wall();
    const auto server = store_->time().get();
    const auto received = store_->clock().wall();
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

  const Servers servers_;
  const std::string url_;
  Store* store_ = nullptr;
  std::string described_;
  Findings findings_;
};

int examine(const Globals& globals, const std::string& given) {
  const std::string url = given.empty() ? store_url(globals) : given;
  Examination examination{Servers{url}, url};
  const auto findings = examination.run();
  bool danger = false;
  Json rows = Json::array();
  for (const auto& finding : findings.all()) {
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
    print(Json::object({{"ok", !danger}, {"store", examination.store()}, {"findings", rows}}));
  return danger ? exit_check_failed : exit_ok;
}

}  // namespace

Command doctor_command(const Globals& globals) {
  const auto url = std::make_shared<std::string>();
  return {
      .name = "doctor",
      .summary = std::string{program_of("doctor").summary},
      .arguments = {{"URL", "The store to examine; else the one of --store", into(*url), false}},
      .action = [&globals, url] { return examine(globals, *url); }};
}

}  // namespace sluice::cli
