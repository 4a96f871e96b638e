#include "lock/chaos/conductor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "lock/chaos/names.hpp"
#include "sluice/open.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "support/plain_client.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using Kind = Trouble::Kind;

std::uint64_t wall_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

Rules rules_of(const ChaosOptions& options) {
  Rules rules = agreed_rules();
  if (!options.only_safety) {
    rules.patience = 4s;
    rules.longest = 60s;
    rules.queued = 1s;
  }
  return rules;
}

std::string journal_of(const std::string& who) { return "worker-" + who; }

std::string end_of(const std::filesystem::path& path) {
  constexpr std::size_t most = 2000;
  std::ifstream file{path};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  return text.size() > most ? text.substr(text.size() - most) : text;
}

}  // namespace

const std::array<Conductor::Deed, 15> Conductor::deeds{{
    {20, false, "short stops", &Conductor::stop_briefly},
    {10, false, "stops beyond the lease", &Conductor::stop_beyond_the_lease},
    {4, false, "stops of several", &Conductor::stop_several},
    {10, false, "killed workers", &Conductor::kill_worker},
    {8, false, "cut lines", &Conductor::lose_replies},
    {6, true, "killed clients", &Conductor::kill_clients},
    {8, true, "saves", &Conductor::save},
    {4, true, "stops of the server", &Conductor::stop_server},
    {3, true, "restarts with all data", &Conductor::restart_server},
    {5, true, "restarts from an older file", &Conductor::restart_from_snapshot},
    {6, true, "promotions", &Conductor::promote},
    {4, true, "times without memory", &Conductor::use_up_memory},
    {3, true, "FLUSHALL", &Conductor::empty_server},
    {6, false, "stops of a node", &Conductor::stop_node},
    {3, false, "restarts of a node with its data", &Conductor::restart_node},
}};

Conductor::Conductor(ChaosOptions options) : options_(options), dice_(options.seed) {
  for (int slot = 0; slot < options_.workers; ++slot) workers_.push_back({.slot = slot + 1});
}

std::uint64_t Conductor::up_to(std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>{0, most}(dice_);
}

Stamp Conductor::between(std::chrono::milliseconds least, std::chrono::milliseconds most) {
  return least +
         std::chrono::milliseconds{up_to(static_cast<std::uint64_t>((most - least).count()))};
}

void Conductor::later(Stamp delay, std::function<void()> what) {
  agenda_.emplace(stamp() + delay, std::move(what));
}

std::size_t Conductor::begin(Kind kind, std::string text, const std::string& who) {
  const Stamp now = stamp();
  troubles_.push_back({kind, std::move(text), now, now + 24h, UINT64_MAX, who});
  return troubles_.size() - 1;
}

void Conductor::end(std::size_t trouble) {
  troubles_[trouble].end = stamp();
  troubles_[trouble].end_us = wall_us();
}

Value Conductor::tell(const test::RedisServer& server,
                      std::initializer_list<std::string_view> words) {
  return test::PlainClient{server.port()}.command(words);
}

bool Conductor::is_replicated() {
  return tell(replica(), {"INFO", "replication"}).as_text().find("master_link_status:up") !=
         std::string::npos;
}

void Conductor::follow() {
  tell(replica(), {"REPLICAOF", "127.0.0.1", std::to_string(master().port())});
}

void Conductor::set_permits() {
  const auto store = open(master().url());
  for (const auto& [name, terms] : agreed_rules().names) {
    const auto many = static_cast<std::uint32_t>(terms.permits);
    if (name == "desks") Semaphore{*store, name}.ensure_permits(many).get();
    if (name == "permits") PermitSemaphore{*store, name}.ensure_permits(many).get();
  }
}

void Conductor::set_up() {
  follow();
  set_permits();
  const Stamp patience = stamp() + 20s;
  while (!is_replicated() && stamp() < patience) std::this_thread::sleep_for(10ms);
  tell(master(), {"SAVE"});
  for (auto& worker : workers_) start(worker);
}

void Conductor::start(Worker& worker) {
  worker.who = fmt::format("{}.{}", worker.slot, ++worker.life);
  journals_.emplace_back(worker.who, 0);
  const auto place = static_cast<std::size_t>(worker.slot) % lines_.size();
  std::vector<std::string> words{"/proc/self/exe",
                                 "--worker",
                                 lines_[place].url(),
                                 folder_ / journal_of(worker.who),
                                 std::to_string(dice_()),
                                 std::to_string(options_.threads),
                                 options_.careless ? "0" : "1"};
  for (const auto& node : nodes_) words.push_back(node.url());
  worker.process.emplace(
      words, test::ProcessOptions{.directory = {},
                                  .environment = {},
                                  .output = folder_ / (journal_of(worker.who) + ".log")});
  worker.trouble = 0;
}

// --- What is done to workers.

/// One that runs; null: there is none.
Conductor::Worker* Conductor::any_worker() {
  Worker& worker = workers_[up_to(workers_.size() - 1)];
  return worker.trouble == 0 ? &worker : nullptr;
}

void Conductor::stop(Worker& worker, Stamp time) {
  worker.process->stop();
  const auto trouble = begin(Kind::process, "worker " + worker.who + " is stopped", worker.who);
  worker.trouble = trouble + 1;
  later(time, [this, &worker, trouble] {
    worker.process->cont();
    end(trouble);
    worker.trouble = 0;
  });
}

void Conductor::stop_briefly() {
  if (auto* worker = any_worker()) stop(*worker, between(20ms, 800ms));
}

void Conductor::stop_beyond_the_lease() {
  if (auto* worker = any_worker()) stop(*worker, lease + between(100ms, 2500ms));
}

void Conductor::stop_several() {
  for (std::size_t i = 0; i < workers_.size() / 2; ++i) stop_beyond_the_lease();
}

void Conductor::kill_worker() {
  auto* worker = any_worker();
  if (!worker) return;
  const auto trouble = begin(Kind::process, "worker " + worker->who + " is killed", worker->who);
  worker->process->kill();
  end(trouble);
  start(*worker);
}

/// Nobody but us ends workers.
void Conductor::see_to_workers() {
  for (auto& worker : workers_) {
    if (worker.trouble != 0 || worker.process->running()) continue;
    find(worker.who,
         fmt::format("worker {} has ended by itself with {}:\n{}", worker.who,
                     worker.process->wait(), end_of(folder_ / (journal_of(worker.who) + ".log"))));
    start(worker);
  }
}

// --- What is done to the server and the lines.

void Conductor::server_is_well() { server_is_busy_ = false; }

/// `patience`: so many looks, 50 ms apart. Sometimes the next trouble does not wait for it.
void Conductor::await_replica(int patience) {
  if (patience == 0 || is_replicated()) return server_is_well();
  later(50ms, [this, patience] { await_replica(patience - 1); });
}

void Conductor::stop_server() {
  master().stop();
  const auto trouble = begin(Kind::server, "the server is stopped");
  later(between(50ms, 2500ms), [this, trouble] {
    master().cont();
    end(trouble);
    server_is_well();
  });
}

void Conductor::restart_server() {
  const auto trouble = begin(Kind::server, "the server is restarted with its data");
  master().restart(true);
  end(trouble);
  await_replica(static_cast<int>(up_to(100)));
}

void Conductor::restart_from_snapshot() {
  const auto trouble = begin(Kind::snapshot, "the server is killed, its file is older");
  master().kill();
  later(between(0ms, 1000ms), [this, trouble] {
    master().start();
    set_permits();  // a replica's file may be of the time before there were any
    end(trouble);
    await_replica(static_cast<int>(up_to(100)));
  });
}

void Conductor::promote() {
  if (!is_replicated()) return server_is_well();
  const auto trouble = begin(Kind::promotion, "the replica is promoted");
  tell(replica(), {"REPLICAOF", "NO", "ONE"});
  master_ = 1 - master_;
  const std::size_t first = up_to(1);
  lines_[first].turn_to(master().port());
  later(between(0ms, 1500ms), [this, trouble, last = 1 - first] {
    lines_[last].turn_to(master().port());
    replica().kill();
    set_permits();
    end(trouble);
    replica().restart(false);
    follow();
    await_replica(200);
  });
}

void Conductor::use_up_memory() {
  const auto trouble = begin(Kind::server, "the server has no memory");
  tell(master(), {"CONFIG", "SET", "maxmemory", "1"});
  later(between(200ms, 3000ms), [this, trouble] {
    tell(master(), {"CONFIG", "SET", "maxmemory", "0"});
    end(trouble);
    server_is_well();
  });
}

void Conductor::empty_server() {
  const auto trouble = begin(Kind::snapshot, "the server is emptied");
  tell(master(), {"FLUSHALL"});
  set_permits();
  end(trouble);
  await_replica(20);
}

void Conductor::stop_node() {
  if (std::exchange(node_is_busy_, true)) return;
  auto& node = nodes_.at(up_to(2));
  node.stop();
  const auto trouble = begin(Kind::node, "a node is stopped");
  later(between(50ms, 2500ms), [this, &node, trouble] {
    node.cont();
    end(trouble);
    node_is_busy_ = false;
  });
}

void Conductor::restart_node() {
  if (node_is_busy_) return;
  const auto trouble = begin(Kind::node, "a node is restarted with its data");
  nodes_.at(up_to(2)).restart(true);
  end(trouble);
}

void Conductor::kill_clients() {
  constexpr std::array<std::string_view, 4> types{"normal", "pubsub", "replica", "normal"};
  const auto trouble = begin(Kind::server, "connections are killed by the server");
  tell(master(), {"CLIENT", "KILL", "TYPE", types.at(up_to(3))});
  end(trouble);
  await_replica(20);
}

void Conductor::save() {
  tell(master(), {"SAVE"});
  server_is_well();
}

void Conductor::lose_replies() {
  test::FaultProxy& line = lines_[up_to(1)];
  const auto trouble = begin(Kind::server, "replies are lost with their lines");
  line.on(test::any_reply(), {.fault = test::LineFault::cut,
                              .bytes = up_to(3),
                              .skip = up_to(200),
                              .times = 1 + up_to(3)});
  later(between(100ms, 1000ms), [this, &line, trouble] {
    line.forget_rules();
    end(trouble);
  });
}

// --- The play.

void Conductor::play_one() {
  std::uint64_t all = 0;
  for (const auto& deed : deeds) all += static_cast<std::uint64_t>(deed.weight);
  std::uint64_t lot = up_to(all - 1);
  for (const auto& deed : deeds) {
    const auto weight = static_cast<std::uint64_t>(deed.weight);
    if (lot >= weight) {
      lot -= weight;
      continue;
    }
    if (!options_.trouble.empty() && options_.trouble != deed.name) return;
    if (deed.at_server && std::exchange(server_is_busy_, true)) return;
    ++played_[deed.name];
    return (this->*deed.play)();
  }
}

void Conductor::run_agenda() {
  while (!agenda_.empty() && agenda_.begin()->first <= stamp()) {
    const auto what = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    what();
  }
}

void Conductor::read_journals() {
  for (const auto& [who, life] : journals_) sections_.read(folder_ / journal_of(who), who);
}

void Conductor::find(const std::string& name, const std::string& text) {
  const Finding finding{name, text, stamp()};
  if (!known_.insert(text).second) return;
  findings_.push_back(finding);
  fmt::print("found: {}: {}\n", name, text);
}

/// All of the history, or what is new and what may have been written late.
void Conductor::look(bool all) {
  constexpr Stamp late = 60s;
  read_journals();
  const Stamp since = all ? Stamp{} : looked_ - late;
  looked_ = stamp();
  for (const auto& finding : check(sections_.all(), troubles_, rules_of(options_), since)) {
    constexpr std::size_t most = 20;
    if (!known_.insert(finding.text).second) continue;
    findings_.push_back(finding);
    if (findings_.size() <= most) fmt::print("\n{}", extract(sections_.all(), troubles_, finding));
  }
}

void Conductor::tell_progress() {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(stamp() - began_);
  fmt::print("{:>5} s  {} sections, {} troubles, {} findings\n", now.count(),
             sections_.all().size(), troubles_.size(), findings_.size());
  std::fflush(stdout);
}

int Conductor::run() {
  fmt::print("seed {}: {} processes of {} threads for {} s\n", options_.seed, options_.workers,
             options_.threads, options_.time.count());
  set_up();
  began_ = looked_ = stamp();
  const Stamp over = began_ + options_.time;
  Stamp next_trouble = began_ + 500ms;
  Stamp next_look = began_ + 10s;
  while (stamp() < over) {
    run_agenda();
    see_to_workers();
    if (stamp() >= next_trouble) {
      play_one();
      next_trouble = stamp() + between(50ms, 1000ms);
    }
    if (stamp() >= next_look) {
      look(false);
      tell_progress();
      next_look = stamp() + 10s;
    }
    std::this_thread::sleep_for(5ms);
  }
  settle();
  end_workers();
  look(true);
  look_at_server();
  return report();
}

/// Until nothing is done to anybody any more.
void Conductor::settle() {
  while (!agenda_.empty()) {
    run_agenda();
    std::this_thread::sleep_for(5ms);
  }
  std::this_thread::sleep_for(500ms);
  see_to_workers();
}

/// Who waits comes in now, or is refused.
void Conductor::end_workers() {
  const Stamp deadline = stamp() + 60s;
  for (auto& worker : workers_) worker.process->terminate();
  for (auto& worker : workers_) {
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(deadline - stamp());
    const auto code = worker.process->wait_for(std::max(patience, 1ms));
    if (!code) find(worker.who, fmt::format("worker {} does not end", worker.who));
    if (code && *code != 0)
      find(worker.who, fmt::format("worker {} ended with {}:\n{}", worker.who, *code,
                                   end_of(folder_ / (journal_of(worker.who) + ".log"))));
    if (!code) worker.process->kill();
  }
}

/// What should not be there when all holds have ended.
std::vector<std::string> Conductor::left_on_server() {
  std::vector<std::string> left;
  test::PlainClient client{master().port()};
  const auto keys = client.command({"KEYS", "*"});
  const Rules rules = agreed_rules();
  for (const auto& key : keys.as_items()) {
    const std::string name{key.as_text()};
    const auto terms = rules.names.find(name);
    const bool is_known = terms != rules.names.end();
    if (is_known && terms->second.is_lock())
      left.push_back(name + ", a hold of nobody");
    else if (!is_known && client.command({"PTTL", name}).as_integer() == -1)
      left.push_back(name + ", without a TTL");
  }
  return left;
}

void Conductor::look_at_server() {
  const auto store = open(master().url());
  // Permits of the dead come back with the next call.
  const auto free_permits = [&store] {
    return std::map<std::string, std::int64_t>{
        {"desks", Semaphore{*store, "desks"}.available().get()},
        {"permits", PermitSemaphore{*store, "permits"}.available().get()}};
  };
  const auto names = agreed_rules().names;
  const auto is_short = [&names](const auto& free) {
    return free.second != static_cast<std::int64_t>(names.at(free.first).permits);
  };
  const Stamp patience = stamp() + lease + 10s;
  auto free = free_permits();
  while ((!left_on_server().empty() || std::ranges::any_of(free, is_short)) && stamp() < patience) {
    std::this_thread::sleep_for(50ms);
    free = free_permits();
  }
  for (const auto& left : left_on_server()) find(left, "is left on the server: " + left);
  for (const auto& [name, many] : free)
    if (many != static_cast<std::int64_t>(names.at(name).permits))
      find(name, fmt::format("{} of {} permits are free in the end", many, names.at(name).permits));
}

int Conductor::report() {
  std::map<std::string, std::size_t> entered;
  std::map<std::string, Stamp> longest;
  for (const auto& section : sections_.all()) {
    if (section.entered) ++entered[section.name];
    if (section.came)
      longest[section.name] = std::max(longest[section.name], *section.came - section.asked);
  }
  if (entered.empty()) find("all", "nobody was in any lock");
  for (const auto& [name, terms] : agreed_rules().names) {
    fmt::print("{:>8} times in {}, longest wait {:.1f} s\n", entered[name], name,
               static_cast<double>(longest[name].count()) / 1e9);
    if (entered[name] == 0 && !options_.only_safety) find(name, "nobody was in " + name);
  }
  for (const auto& [name, many] : played_) fmt::print("{:>8} {}\n", many, name);
  for (const auto& [why, many] : sections_.failures())
    fmt::print("{:>8} calls failed: {}\n", many, why);
  fmt::print("{} findings\n", findings_.size());
  if (findings_.empty() && !options_.keep) return 0;
  const auto kept = std::filesystem::temp_directory_path() /
                    fmt::format("sluice-chaos-{}-{}", options_.seed, ::getpid());
  std::filesystem::copy(folder_.path(), kept);
  fmt::print("The journals are in {}. The same troubles again: scripts/chaos {} --seed {}\n",
             kept.string(), options_.time.count(), options_.seed);
  return findings_.empty() ? 0 : 1;
}

}  // namespace sluice::chaos
