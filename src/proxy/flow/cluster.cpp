#include "proxy/flow/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"
#include "net/endpoint.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/seeds.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {

Cluster::Cluster(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls,
                 Resolver& resolver)
    : settings_(std::move(settings)),
      lines_(settings_, std::move(tls), resolver),
      refresher_(
          seeds_of(settings_->cluster),
          {.tls = settings_->server_tls.on, .longest_answer_timeout = settings_->connect_timeout}) {
  thread_ = start_thread([this] { run(); });
}

Cluster::~Cluster() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  lines_.wake();
  thread_.join();
}

bool Cluster::serves(const PoolSettings& settings) const {
  return AskingLines::are_alike(settings, *settings_) &&
         settings.read_from == settings_->read_from &&
         settings.replica_max_lag == settings_->replica_max_lag;
}

std::uint64_t Cluster::next_turn() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Cluster::Map Cluster::map() const {
  const std::lock_guard lock{mutex_};
  return refresher_.map();
}

void Cluster::moved(std::uint16_t slot, const topology::Endpoint& from,
                    const topology::Endpoint& to) {
  const std::lock_guard lock{mutex_};
  const auto* const owner = refresher_.map()->owner(slot);
  if (owner && owner->endpoint == to) return;  // many requests hear of it
  if (refresher_.moved(system_clock().steady(), slot, from, to)) tell();
  lines_.wake();
}

void Cluster::lost(const topology::Endpoint& node) {
  const std::lock_guard lock{mutex_};
  refresher_.lost(system_clock().steady(), node);
  lines_.wake();
}

void Cluster::is_back(const topology::Endpoint& node) {
  const std::lock_guard lock{mutex_};
  refresher_.is_back(system_clock().steady(), node);
  lines_.wake();
}

void Cluster::doubt() {
  const std::lock_guard lock{mutex_};
  refresher_.doubt(system_clock().steady());
  lines_.wake();
}

std::vector<ReplicaWatch::Replica> Cluster::replicas_of(const topology::Endpoint& master) const {
  const std::lock_guard lock{mutex_};
  const auto found = replicas_.find(master);
  return found == replicas_.end() ? std::vector<ReplicaWatch::Replica>{} : found->second;
}

void Cluster::want_replicas(const topology::Endpoint& master) {
  const std::lock_guard lock{mutex_};
  if (std::ranges::find(wanted_, master) != wanted_.end()) return;
  wanted_.push_back(master);
  lines_.wake();
}

void Cluster::run() {
  for (;;) {
    const auto now = system_clock().steady();
    std::vector<topology::RefreshQuestion> questions;
    std::vector<topology::Endpoint> wanted;
    {
      const std::lock_guard lock{mutex_};
      if (ending_) break;
      questions = refresher_.act(now);
      wanted.swap(wanted_);
    }
    for (const auto& question : questions) ask(question);  // it may have its answer at once
    auto next = follow_replicas(now, wanted);
    {
      const std::lock_guard lock{mutex_};
      next = std::min(next, refresher_.wakes());
    }
    lines_.wait(next);
  }
}

/// When to come again.
SteadyTime Cluster::follow_replicas(SteadyTime now, const std::vector<topology::Endpoint>& wanted) {
  const auto map = this->map();
  const auto follow = [&](const topology::Endpoint& master, Followed& followed) {
    followed.watch.follow(master, topology::serving_replicas_of(*map, master));
  };
  if (std::exchange(map_of_followed_, map) != map) {
    std::erase_if(followed_, [&](const auto& one) {
      const auto* const node = map->find(one.first);
      return !node || !map->has_slots(*node);
    });
    for (auto& [master, followed] : followed_) follow(master, followed);
  }
  for (const auto& master : wanted) {
    const auto certified = [this](const auto& node) { return this->certified(node); };
    const auto [at, is_new] = followed_.try_emplace(
        master, Followed{ReplicaWatch{lines_, settings_->replica_max_lag, certified}});
    auto& followed = at->second;
    if (is_new) follow(master, followed);
    followed.watch.want(now);
    if (!followed.watch.told().empty()) {
      followed.missing.found();
    } else if (followed.missing.is_due(now)) {
      doubt();
    }
  }
  auto next = SteadyTime::max();
  std::map<topology::Endpoint, std::vector<ReplicaWatch::Replica>> told;
  for (auto& [master, followed] : followed_) {
    next = std::min(next, followed.watch.act(now));
    told[master] = followed.watch.told();
  }
  const std::lock_guard lock{mutex_};
  replicas_.swap(told);
  return next;
}

/// The name that its certificate bears, where it is known by its address.
std::string Cluster::certified(const topology::Endpoint& node) const {
  const auto map = this->map();
  const auto* const known = map->find(node);
  const bool has_name = known && !known->hostname.empty() && net::is_numeric(node.host);
  return has_name ? known->hostname : std::string{};
}

void Cluster::ask(const topology::RefreshQuestion& question) {
  std::vector<std::vector<std::string>> commands;
  for (const auto& command : topology::commands_of(question.form))
    commands.emplace_back(command.begin(), command.end());
  lines_.ask(
      {AskingLines::Use::asks_server, question.node}, commands,
      [this, id = question.id](const auto& replies, std::string_view why) {
        take(id, replies, why);
      },
      certified(question.node));
}

void Cluster::take(std::uint64_t question, const std::vector<Value>& replies,
                   std::string_view why) {
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (replies.empty()) return refresher_.failed(now, question, why);
  if (refresher_.answered(now, question, replies)) tell();
}

/// REQUIRES: mutex_ is held
void Cluster::tell() {
  const auto& map = *refresher_.map();
  if (std::exchange(knew_nothing_, map.knows_nothing()) && !knew_nothing_)
    log(LogLevel::info,
        fmt::format("pool '{}': the cluster has {} nodes{}", settings_->name, map.nodes().size(),
                    map.uncovered() == 0
                        ? ""
                        : fmt::format(", and {} slots that none of them serves", map.uncovered())));
  turn_.store(next_turn(), std::memory_order_release);
}

}  // namespace sluice::proxy::flow
