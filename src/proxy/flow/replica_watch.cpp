#include "proxy/flow/replica_watch.hpp"

#include <utility>

#include "sluice/error.hpp"

namespace sluice::proxy::flow {

ReplicaWatch::ReplicaWatch(AskingLines& lines, std::chrono::milliseconds max_lag,
                           Certified certified)
    : lines_(lines),
      certified_(std::move(certified)),
      freshness_(
          std::make_shared<topology::Freshness>(topology::FreshnessOptions{.max_lag = max_lag})) {}

void ReplicaWatch::want(SteadyTime now) {
  static_cast<void>(freshness_->pick(now, SteadyTime::min()));
}

void ReplicaWatch::follow(const std::optional<topology::Endpoint>& master,
                          std::vector<topology::Endpoint> replicas) {
  std::erase_if(replicas, [&](const auto& one) { return one == master; });
  if (master != master_) {
    master_ = master;
    freshness_->forget_all();
  }
  if (replicas == replicas_) return;
  replicas_ = std::move(replicas);
  freshness_->follow(replicas_);
}

SteadyTime ReplicaWatch::act(SteadyTime now) {
  if (master_)
    for (const auto& question : freshness_->act(now)) ask(question);
  return freshness_->wakes();
}

void ReplicaWatch::ask(const topology::FreshnessQuestion& question) {
  const auto& to = question.replica ? *question.replica : *master_;
  lines_.ask(
      {AskingLines::Use::asks_server, to}, {{"INFO", "replication"}},
      [known = std::weak_ptr{freshness_}, id = question.id](const auto& replies, std::string_view) {
        const auto freshness = known.lock();
        if (!freshness) return;
        try {
          if (replies.empty())
            freshness->failed(id);
          else
            freshness->answered(system_clock().steady(), id, replies.front());
        } catch (const Error&) {  // no answer: it is not fresh
        }
      },
      certified_ ? certified_(to) : std::string{});
}

std::vector<ReplicaWatch::Replica> ReplicaWatch::told() const {
  std::vector<Replica> all;
  for (const auto& replica : replicas_) all.push_back({replica, freshness_->caught_up(replica)});
  return all;
}

}  // namespace sluice::proxy::flow
