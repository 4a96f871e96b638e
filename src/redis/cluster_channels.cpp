#include "redis/cluster_channels.hpp"

#include <fmt/format.h>

#include "redis/calls.hpp"
#include "redis/cluster.hpp"
#include "redis/cluster_way.hpp"
#include "sluice/log.hpp"
#include "store/spawn_if_possible.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

/// After a refusal that another node will not mend (NOPERM).
constexpr auto pause_after_refusal = 1s;

Request subscription(Hearer::Kind kind, const std::string& channel, bool ends) {
  const bool is_sharded = kind == Hearer::Kind::sharded;
  const std::string_view verb =
      is_sharded ? (ends ? "SUNSUBSCRIBE" : "SSUBSCRIBE") : (ends ? "UNSUBSCRIBE" : "SUBSCRIBE");
  const std::string_view words[] = {verb, channel};
  static constexpr std::string_view ping[] = {"PING"};
  Request request;
  request.add(words);
  if (ends) request.add(ping);
  request.set_answered_by(ends         ? Request::answered_by_ping
                          : is_sharded ? std::string_view{"ssubscribe"}
                                       : std::string_view{"subscribe"});
  return request;
}

}  // namespace

/// Keeps one handler; the channel is subscribed as long as there is one.
class ClusterChannels::Registration final : public Listener::Registration {
 public:
  Registration(ClusterPtr cluster, Key key, MessageHandler function)
      : cluster_(std::move(cluster)),
        key_(std::move(key)),
        handler_(std::make_shared<Handler>(std::move(function))) {
    ClusterChannels& all = cluster_->channels();
    // Before the place, which is forgotten with the last handler.
    needs_subscribing_ = all.handlers(key_.first).add(key_.second, handler_);
    const std::lock_guard lock{all.mutex_};
    all.places_.try_emplace(key_);
  }
  ~Registration() override {
    if (cluster_->is_of_parent()) return;
    ClusterChannels& all = cluster_->channels();
    all.handlers(key_.first).remove(key_.second, *handler_, [&] {
      if (auto node = all.forget(key_))
        spawn_if_possible([&] { return unsubscribe(std::move(node), key_); });
    });
    handler_->end();
  }

  bool needs_subscribing() const noexcept { return needs_subscribing_; }

 private:
  const ClusterPtr cluster_;
  const Key key_;
  const std::shared_ptr<Handler> handler_;
  bool needs_subscribing_ = false;
};

Task<Listener> ClusterChannels::listen(ClusterPtr cluster, Kind kind, std::string channel,
                                       MessageHandler function) {
  if (cluster->is_of_parent()) throw closed_by_fork();
  auto registration =
      std::make_unique<Registration>(cluster, Key{kind, channel}, std::move(function));
  if (registration->needs_subscribing()) {
    auto subscribing = subscribe(cluster, {kind, channel}, deadline_of(cluster->options(), {}));
    co_await subscribing;
  }
  co_return Listener{std::move(registration)};
}

Task<void> ClusterChannels::subscribe(ClusterPtr cluster, Key key, SteadyTime deadline) {
  ClusterChannels& all = cluster->channels();
  const auto slot = hash_slot(key.second);
  const Request request = subscription(key.first, key.second, false);
  Way way{*cluster, slot, system_clock().steady()};
  for (;;) {
    const NodePtr node = way.next().node;
    if (!node) {
      way.found_nobody();
      co_await pause(*cluster, way, request.name(0), deadline, false);
      continue;
    }
    if (!all.ask_at(key, node)) co_return;  // nobody listens any more
    Value reply;
    Link& listener = node->client->listener();
    Operation operation{request, {&reply, 1}, deadline, {.repeatable = true}, &listener, slot};
    listener.submit(operation);
    co_await operation.done;
    all.asked(key);
    if (operation.failure) std::rethrow_exception(operation.failure);
    if (operation.returned) {
      way.returned(system_clock().steady());
      continue;
    }
    if (!reply.is_error()) co_return;
    if (!is_refusal(reply.as_text(), false, slot)) {
      checked(request, std::move(reply), false);
      co_return;
    }
    way.refused(*node, reply.as_text());
    if (way.must_pause()) co_await pause(*cluster, way, request.name(0), deadline, false);
  }
}

Task<void> ClusterChannels::subscribe_anew(ClusterPtr cluster, Key key) {
  ClusterChannels& all = cluster->channels();
  std::optional<Error> refusal;
  try {
    auto subscribing = subscribe(cluster, key, SteadyTime::max());
    co_await subscribing;
  } catch (const Error& error) {
    refusal = error;
  }
  if (refusal && !cluster->is_closed()) {
    log(LogLevel::warning, fmt::format("{}: channel '{}' is not subscribed any more: {}",
                                       cluster->name(), key.second, refusal->message()));
    co_await sleep_until(system_clock(), system_clock().steady() + pause_after_refusal);
  }
  {
    const std::lock_guard lock{all.mutex_};
    // Perhaps it is another one by now, of a new listener.
    if (const auto found = all.places_.find(key); found != all.places_.end())
      found->second.is_asked = false;
  }
  cluster->look();
}

Task<void> ClusterChannels::unsubscribe(NodePtr node, Key key) {
  Link& listener = node->client->listener();
  if (!listener.pulse().is_ready) co_return;
  const Request request = subscription(key.first, key.second, true);
  std::array<Value, 2> replies;
  Operation operation{request, replies, SteadyTime::max(), {}, &listener};
  operation.once = true;
  listener.submit(operation);
  co_await operation.done;
}

void ClusterChannels::check(const ClusterPtr& cluster) {
  std::vector<Key> homeless;
  std::vector<std::pair<NodePtr, Key>> left;
  {
    const std::lock_guard lock{mutex_};
    for (auto& [key, place] : places_) {
      const auto slot = hash_slot(key.second);
      const bool has_parted =
          place.is_confirmed && place.node && cluster->is_elsewhere(slot, *place.node->hearer);
      if (has_parted) {
        left.emplace_back(place.node, key);
        end(place);
      }
      if (place.node || place.is_asked) continue;
      if (!place.has_gap) continue;  // the first caller is on its way
      place.is_asked = true;
      homeless.push_back(key);
    }
  }
  for (auto& [node, key] : left) spawn(unsubscribe(std::move(node), std::move(key)), {});
  for (auto& key : homeless) spawn(subscribe_anew(cluster, std::move(key)));
}

void ClusterChannels::put(Place& place, NodePtr node) {
  if (node) node->hearer->want();
  if (place.node) place.node->hearer->let_go();
  place.node = std::move(node);
}

void ClusterChannels::end(Place& place) {
  put(place, nullptr);
  place.has_gap |= std::exchange(place.is_confirmed, false);
}

bool ClusterChannels::ask_at(const Key& key, const NodePtr& node) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(key);
  if (found == places_.end()) return false;
  if (!found->second.is_confirmed) put(found->second, node);
  return true;
}

/// Without success: its connection is not wanted for this.
void ClusterChannels::asked(const Key& key) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(key);
  if (found != places_.end() && !found->second.is_confirmed) put(found->second, nullptr);
}

NodePtr ClusterChannels::forget(const Key& key) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  NodePtr node = found->second.node;
  put(found->second, nullptr);
  places_.erase(found);
  return node;
}

void ClusterChannels::confirm(const topology::Endpoint& at, Kind kind, const std::string& channel) {
  bool has_gap = false;
  {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find({kind, channel});
    if (found == places_.end()) return;
    Place& place = found->second;
    if (!place.node || place.node->endpoint != at) return;
    place.is_confirmed = true;
    has_gap = std::exchange(place.has_gap, false);
  }
  handlers(kind).confirm(kind, channel);
  if (has_gap) handlers(kind).deliver_gap({channel});
}

void ClusterChannels::deliver(const topology::Endpoint& at, Kind kind, const Message& message) {
  {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find({kind, message.channel});
    if (found == places_.end()) return;
    const Place& place = found->second;
    if (!place.node || place.node->endpoint != at) return;
  }
  handlers(kind).deliver(kind, message);
}

bool ClusterChannels::ended(const topology::Endpoint& at, Kind kind, const std::string& channel) {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find({kind, channel});
  if (found == places_.end()) return false;
  Place& place = found->second;
  if (!place.is_confirmed || !place.node || place.node->endpoint != at) return false;
  end(place);
  return true;
}

void ClusterChannels::lost(const topology::Endpoint& at) {
  const std::lock_guard lock{mutex_};
  for (auto& [key, place] : places_)
    if (place.is_confirmed && place.node && place.node->endpoint == at) end(place);
}

}  // namespace sluice::redis
