#include "lock/chaos/conductor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "lock/chaos/names.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "support/partition.hpp"
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

/// A key of a Series or a Sale, which have no TTL.
bool is_kept(const std::string& key) {
  const Rules rules = agreed_rules();
  return key.starts_with("sluice:sales") || std::ranges::any_of(rules.names, [&](const auto& one) {
           const auto& [name, terms] = one;
           return (terms.numbers || terms.orders) && key.starts_with('{' + name + '}');
         });
}

/// Networks can be cut from then on.
bool enter_network() {
  const auto why_not = test::Partition::enter();
  if (!why_not.empty()) fmt::print("No network is cut: {}\n", why_not);
  return why_not.empty();
}

std::string journal_of(const std::string& who) { return "worker-" + who; }

std::string end_of(const std::filesystem::path& path) {
  constexpr std::size_t most = 2000;
  std::ifstream file{path};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  return text.size() > most ? text.substr(text.size() - most) : text;
}

}  // namespace

Conductor::Conductor(ChaosOptions options)
    : options_(options),
      dice_(options.seed),
      has_network_(options.cluster && enter_network()),
      deployment_(options.cluster ? make_cluster(*this, has_network_)
                                  : make_replicated_server(*this)),
      shop_(folder_ / "orders.db", [this] { return deployment_->open_calmly(); }),
      deeds_{
          {20, false, "short stops", [this] { stop_briefly(); }},
          {10, false, "stops beyond the lease", [this] { stop_beyond_the_lease(); }},
          {4, false, "stops of several", [this] { stop_several(); }},
          {10, false, "killed workers", [this] { kill_worker(); }},
          {6, false, "stops of a node", [this] { stop_node(); }},
          {3, false, "restarts of a node with its data", [this] { restart_node(); }},
      } {
  std::ranges::move(deployment_->deeds(), std::back_inserter(deeds_));
  for (int slot = 0; slot < options_.workers; ++slot) workers_.push_back({.slot = slot + 1});
}

std::uint64_t Conductor::up_to(std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>{0, most}(dice_);
}

void Conductor::later(Stamp delay, std::function<void()> what) {
  agenda_.emplace(stamp() + delay, std::move(what));
}

std::size_t Conductor::begin(Kind kind, std::string text) {
  return begin(kind, std::move(text), {});
}

std::size_t Conductor::begin(Kind kind, std::string text, const std::string& who) {
  const Stamp now = stamp();
  if (options_.keep)
    fmt::print("{:>9.3f} s  {}\n", static_cast<double>((now - began_).count()) / 1e9, text);
  troubles_.push_back({kind, std::move(text), now, now + 24h, UINT64_MAX, who});
  return troubles_.size() - 1;
}

void Conductor::end(std::size_t trouble) {
  troubles_[trouble].end = stamp();
  troubles_[trouble].end_us = wall_us();
}

void Conductor::set_up() {
  deployment_->set_up();
  shop_.open();
  for (auto& worker : workers_) start(worker);
}

void Conductor::start(Worker& worker) {
  worker.who = fmt::format("{}.{}", worker.slot, ++worker.life);
  journals_.emplace_back(worker.who, 0);
  std::vector<std::string> words{"/proc/self/exe",
                                 "--worker",
                                 deployment_->url(static_cast<std::size_t>(worker.slot)),
                                 folder_ / journal_of(worker.who),
                                 worker.who,
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

// --- What is done to the servers of the QuorumLock.

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

// --- The play.

void Conductor::play_one() {
  std::uint64_t all = 0;
  for (const auto& deed : deeds_) all += static_cast<std::uint64_t>(deed.weight);
  std::uint64_t lot = up_to(all - 1);
  for (const auto& deed : deeds_) {
    const auto weight = static_cast<std::uint64_t>(deed.weight);
    if (lot >= weight) {
      lot -= weight;
      continue;
    }
    if (!options_.trouble.empty() && options_.trouble != deed.name) return;
    if (deed.at_server && std::exchange(servers_are_busy_, true)) return;
    ++played_[deed.name];
    return deed.play();
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
  const Stamp until = all ? Stamp::max() : stamp();  // one journal is read before another
  read_journals();
  const Stamp since = all ? Stamp{} : looked_ - late;
  looked_ = stamp();
  for (const auto& finding : check(sections_.all(), troubles_, rules_of(options_), since))
    if (finding.at < until) take(finding);
}

void Conductor::take(const Finding& finding) {
  constexpr std::size_t most = 20;
  if (!known_.insert(finding.text).second) return;
  if (finding.is_explained) {
    ++explained_[finding.name];
    return;
  }
  findings_.push_back(finding);
  if (findings_.size() <= most) fmt::print("\n{}", extract(sections_.all(), troubles_, finding));
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
  for (const auto& finding : shop_.close(sections_.all(), troubles_)) take(finding);
  look_at_servers();
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

/// Who waits comes in now, or is refused. A worker that was started a moment ago does not see to
/// SIGTERM yet.
void Conductor::end_workers() {
  constexpr int ended_before_it_began = 128 + SIGTERM;
  const Stamp deadline = stamp() + 60s;
  for (auto& worker : workers_) worker.process->terminate();
  for (auto& worker : workers_) {
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(deadline - stamp());
    const auto code = worker.process->wait_for(std::max(patience, 1ms));
    if (!code) find(worker.who, fmt::format("worker {} does not end", worker.who));
    if (code && *code != 0 && *code != ended_before_it_began)
      find(worker.who, fmt::format("worker {} ended with {}:\n{}", worker.who, *code,
                                   end_of(folder_ / (journal_of(worker.who) + ".log"))));
    if (!code) worker.process->kill();
  }
}

/// What should not be there when all holds have ended.
std::vector<std::string> Conductor::left_on_servers() {
  std::vector<std::string> left;
  const Rules rules = agreed_rules();
  for (const auto port : deployment_->masters()) {
    test::PlainClient client{port};
    const auto keys = client.command({"KEYS", "*"});
    for (const auto& key : keys.as_items()) {
      const std::string name{key.as_text()};
      const auto terms = rules.names.find(name);
      const bool is_known = terms != rules.names.end();
      if (is_known && terms->second.is_lock())
        left.push_back(name + ", a hold of nobody");
      else if (!is_known && !is_kept(name) && client.command({"PTTL", name}) == Value::integer(-1))
        left.push_back(name + ", without a TTL");
    }
  }
  return left;
}

void Conductor::look_at_servers() {
  const auto store = deployment_->open_calmly();
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
  while ((!left_on_servers().empty() || std::ranges::any_of(free, is_short)) &&
         stamp() < patience) {
    std::this_thread::sleep_for(50ms);
    free = free_permits();
  }
  for (const auto& left : left_on_servers()) find(left, "is left on the server: " + left);
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
  for (const auto& [name, many] : explained_)
    fmt::print("{:>8} in {} were acknowledged, and lost with a server's data\n", many, name);
  fmt::print("{:>8} recoveries of the sale\n", shop_.recoveries());
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
