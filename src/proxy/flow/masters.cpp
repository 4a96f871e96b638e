#include "proxy/flow/masters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/seeds.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

using topology::SentinelQuestion;

}  // namespace

Masters::Masters(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls,
                 Resolver& resolver)
    : settings_(std::move(settings)),
      lines_(settings_, std::move(tls), resolver,
             {.is_back = [this](const auto& sentinel) { is_back(sentinel); },
              .heard = [this](std::string_view message) { heard(message); }}) {
  masters_.reserve(settings_->servers.size());
  for (const auto& server : settings_->servers) {
    masters_.emplace_back(server.name, topology::SentinelWatch{
                                           seeds_of(settings_->sentinels),
                                           {.name = server.name,
                                            .longest_answer_timeout = settings_->connect_timeout}});
    if (settings_->read_from == ReadFrom::replica)
      masters_.back().replicas.emplace(lines_, settings_->replica_max_lag);
    places_[server.name];
  }
  thread_ = start_thread([this] { run(); });
}

Masters::~Masters() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  lines_.wake();
  thread_.join();
}

bool Masters::serves(const PoolSettings& settings) const {
  const auto names = [](const PoolSettings& one) {
    std::vector<std::string> all;
    for (const auto& server : one.servers) all.push_back(server.name);
    return all;
  };
  return AskingLines::are_alike(settings, *settings_) &&
         settings.read_from == settings_->read_from &&
         settings.replica_max_lag == settings_->replica_max_lag &&
         names(settings) == names(*settings_);
}

Masters::Place Masters::of(std::string_view name) const {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(name);
  return found == places_.end() ? Place{} : found->second;
}

std::vector<ReplicaWatch::Replica> Masters::replicas_of(std::string_view name) const {
  const std::lock_guard lock{mutex_};
  const auto found = replicas_.find(name);
  return found == replicas_.end() ? std::vector<ReplicaWatch::Replica>{} : found->second;
}

void Masters::want_replicas(std::string_view name) {
  const std::lock_guard lock{mutex_};
  if (std::ranges::find(wanted_, name) != wanted_.end()) return;
  wanted_.emplace_back(name);
  lines_.wake();
}

void Masters::doubt(std::string_view name) {
  {
    const std::lock_guard lock{mutex_};
    if (std::ranges::find(doubted_, name) != doubted_.end()) return;
    doubted_.emplace_back(name);
  }
  lines_.wake();
}

void Masters::run() {
  for (;;) {
    const auto now = system_clock().steady();
    {
      const std::lock_guard lock{mutex_};
      if (ending_) break;
      for (const auto& name : std::exchange(doubted_, {}))
        for (auto& master : masters_)
          if (master.name == name) master.watch.doubt(now);
      for (const auto& name : std::exchange(wanted_, {}))
        for (auto& master : masters_)
          if (master.name == name && master.replicas) master.replicas->want(now);
    }
    lines_.wait(act(now));
  }
}

SteadyTime Masters::act(SteadyTime now) {
  auto next = SteadyTime::max();
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    auto& master = masters_[i];
    for (const auto& question : master.watch.act(now)) ask(i, question);
    for (const auto& sentinel : master.watch.sentinels())
      lines_.listen({AskingLines::Use::hears_sentinel, sentinel});
    tell(master);
    next = std::min({next, master.watch.wakes(), follow_replicas(master, now)});
  }
  return next;
}

void Masters::ask(std::size_t master, const SentinelQuestion& question) {
  const bool is_for_sentinel = question.to == SentinelQuestion::To::sentinel;
  const auto commands = is_for_sentinel ? topology::sentinel_commands(masters_[master].name)
                                        : std::vector<std::vector<std::string>>{{"ROLE"}};
  const auto use =
      is_for_sentinel ? AskingLines::Use::asks_sentinel : AskingLines::Use::asks_server;
  lines_.ask({use, question.node}, commands,
             [this, master, id = question.id](const auto& replies, std::string_view why) {
               auto& watch = masters_[master].watch;
               if (replies.empty())
                 watch.failed(system_clock().steady(), id, why);
               else
                 watch.answered(system_clock().steady(), id, replies);
             });
}

/// Why workers are told of no master.
std::string Masters::why_none(const Master& master) {
  const auto& now = master.watch.master();
  return now ? fmt::format("{} is, whose address is not known yet", to_string(*now))
             : master.watch.why_not();
}

/// The one before is left at once, though the name of the new one may have to be looked up first.
void Masters::tell(Master& master) {
  auto now = master.watch.master();
  if (now == master.told) return;
  const auto found = now ? lines_.addresses_of(*now) : std::nullopt;
  Place place;
  if (found && *found) {
    place.addresses = **found;
    place.host = now->host;
  } else {
    now.reset();
  }
  if (now == master.told) return;
  log(LogLevel::warning,
      now ? fmt::format("pool '{}': the master '{}' is {} now", settings_->name, master.name,
                        to_string(*now))
          : fmt::format("pool '{}': {} is not the master '{}' any more: {}", settings_->name,
                        to_string(*master.told), master.name, why_none(master)));
  master.told = now;
  const std::lock_guard lock{mutex_};
  place.turn = places_[master.name].turn + 1;
  places_[master.name] = std::move(place);
}

/// When to come again.
SteadyTime Masters::follow_replicas(Master& master, SteadyTime now) {
  if (!master.replicas) return SteadyTime::max();
  master.replicas->follow(master.told, master.watch.replicas());
  const auto next = master.replicas->act(now);
  auto told = master.replicas->told();
  const std::lock_guard lock{mutex_};
  replicas_[master.name] = std::move(told);
  return next;
}

void Masters::heard(std::string_view message) {
  for (auto& master : masters_) master.watch.heard(system_clock().steady(), message);
}

void Masters::is_back(const topology::Endpoint& sentinel) {
  for (auto& master : masters_) master.watch.is_back(system_clock().steady(), sentinel);
}

}  // namespace sluice::proxy::flow
