#include "redis/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/timers.hpp"
#include "redis/calls.hpp"
#include "sluice/log.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using topology::RefreshQuestion;

/// A node that has no slots, and is not asked for so long, needs no connection.
constexpr auto kept_for = 2s;
/// A node that owes a reply and says nothing for so long is silent.
constexpr auto silence = 500ms;
/// Nodes that are not in the map, to which others have redirected, and seeds.
constexpr std::size_t most_strangers = 256;
/// Calls by a course of before are told apart for so long.
constexpr auto gate_time = 1s;

std::vector<topology::Endpoint> seeds_of(const ClusterStoreOptions& options) {
  std::vector<topology::Endpoint> seeds;
  for (const auto& seed : options.seeds) seeds.push_back({seed.host, seed.port});
  return seeds;
}

}  // namespace

std::string describe(const ClusterStoreOptions& options) {
  std::string seeds;
  for (const auto& seed : options.seeds)
    seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", net::to_string(seed));
  return fmt::format("{}+cluster://{}", options.node.tls ? "rediss" : "redis", seeds);
}

std::string NodeHearer::refuse_node(const std::string& id) const {
  const auto cluster = cluster_.lock();
  if (!cluster || !cluster->is_foreign(endpoint_, id)) return {};
  return fmt::format("a node of another cluster is there now, {}", id);
}

void NodeHearer::confirm(Kind kind, const std::string& channel) {
  if (const auto cluster = cluster_.lock()) cluster->channels().confirm(endpoint_, kind, channel);
}

void NodeHearer::deliver(Kind kind, const Message& message) {
  if (const auto cluster = cluster_.lock()) cluster->channels().deliver(endpoint_, kind, message);
}

void NodeHearer::tell_reconnected() {
  if (const auto cluster = cluster_.lock()) cluster->watchers().tell_reconnected();
}

void NodeHearer::ended(Kind kind, const std::string& channel) {
  const auto cluster = cluster_.lock();
  if (!cluster || !cluster->channels().ended(endpoint_, kind, channel)) return;
  cluster->doubt();
  cluster->look();
}

void NodeHearer::lost(bool is_listener) {
  const auto cluster = cluster_.lock();
  if (!cluster) return;
  if (!is_listener) return cluster->node_lost(endpoint_);
  cluster->channels().lost(endpoint_);
  cluster->look();
}

void NodeHearer::connected(bool is_listener) {
  const auto cluster = cluster_.lock();
  if (cluster && !is_listener) cluster->node_connected(endpoint_);
}

/// The slot may have got another master since the call was sent this way.
void NodeHearer::waits(int slot) {
  const auto cluster = cluster_.lock();
  if (cluster && cluster->is_elsewhere(slot, *this)) cluster->look();
}

Cluster::Cluster(ClusterStoreOptions options)
    : options_(std::move(options)),
      name_(describe(options_)),
      reactor_(std::make_shared<Reactor>()),
      callbacks_(std::make_shared<Callbacks>(options_.node.executor)),
      refresher_(seeds_of(options_), {.tls = options_.node.tls != nullptr,
                                      .longest_answer_timeout = options_.node.connect_timeout}),
      followed_(refresher_.map()) {
  owners_.fill(nobody);
  before_.fill(nobody);
}

void Cluster::open() {
  reactor_->add(shared_from_this());
  reactor_->start(shared_from_this());
  std::unique_lock lock{mutex_};
  const auto deadline = Clock::add(
      system_clock().steady(), std::min(options_.node.connect_timeout, options_.node.open_timeout));
  const auto is_told = [&] { return !refresher_.map()->knows_nothing() || is_hopeless(); };
  const auto left =
      std::min<std::chrono::nanoseconds>(deadline - system_clock().steady(), std::chrono::days{1});
  told_.wait_for(lock, left, is_told);
  if (!refresher_.map()->knows_nothing()) return;
  // What helps most: that the user is refused rather than that a server is away.
  const auto worst = std::ranges::find_if(refusals_, [](const auto& one) {
    return one.second.errc() == Errc::authentication || one.second.errc() == Errc::server;
  });
  if (worst != refusals_.end()) throw Error{worst->second.errc(), worst->second.message()};
  throw Error{
      is_hopeless() ? Errc::connection : Errc::timeout,
      fmt::format("no node of {} has told its map in time: {}", name_, refresher_.why_not())};
}

/// Every seed has refused.
bool Cluster::is_hopeless() const { return refusals_.size() >= options_.seeds.size(); }

void Cluster::close() {
  await_running_timer();
  std::map<topology::Endpoint, NodePtr> nodes;
  {
    const std::lock_guard lock{mutex_};
    closed_.store(true, std::memory_order_release);
    nodes.swap(nodes_);
  }
  for (const auto& [endpoint, node] : nodes)
    if (node->replicas) node->replicas->close();
  std::vector<std::shared_ptr<Client>> clients;
  for (const auto& [endpoint, node] : nodes) clients.push_back(node->client);
  Client::leave(clients);
  reactor_->remove(*this);
  reactor_->stop();
  callbacks_->end();
}

void Cluster::look() noexcept {
  looks_.store(true, std::memory_order_release);
  reactor_->wake();
}

void Cluster::look_soon() { reactor_->wake_before(Clock::add(system_clock().steady(), silence)); }

// What calls read.

Course Cluster::course(std::uint16_t slot, SteadyTime now) {
  const std::lock_guard lock{courses_mutex_};
  Course course;
  course.version = version_.load(std::memory_order_relaxed);
  if (owners_[slot] == nobody) return course;
  course.node = places_[owners_[slot]];
  if (now < gates_until_ && before_[slot] != nobody) course.before = places_[before_[slot]];
  return course;
}

void Cluster::sent_late(std::uint16_t slot, const NodePtr& node) {
  const std::lock_guard lock{courses_mutex_};
  if (owners_[slot] == nobody || places_[owners_[slot]] == node) return;
  const auto place = std::ranges::find(places_, node);
  before_[slot] = static_cast<std::uint16_t>(place - places_.begin());
  if (place == places_.end()) places_.push_back(node);
  gates_until_ = system_clock().steady() + gate_time;
}

std::shared_ptr<Gate> Cluster::join(GateKey key, const std::shared_ptr<Gate>& gate, bool if_any) {
  const std::lock_guard lock{gates_mutex_};
  if (if_any && !gates_.contains(key)) return nullptr;
  auto before = std::exchange(gates_[key], gate);
  gated_.store(gates_.size(), std::memory_order_relaxed);
  return before;
}

void Cluster::leave(GateKey key, std::shared_ptr<Gate> gate) {
  const auto version = gate->version;
  while (gate) {
    std::shared_ptr<Gate> next;
    {
      const std::lock_guard lock{gates_mutex_};
      const auto last = gates_.find(key);
      if (last != gates_.end() && last->second == gate) gates_.erase(last);
      gated_.store(gates_.size(), std::memory_order_relaxed);
      gate->is_left = true;
      gate->version = version;
      next = std::move(gate->next);
    }
    gate->sent.complete();
    gate = std::move(next);
  }
}

void Cluster::leave_behind(GateKey key, Gate& before, std::shared_ptr<Gate> gate) {
  {
    const std::lock_guard lock{gates_mutex_};
    if (!before.is_left) {
      before.next = std::move(gate);
      return;
    }
  }
  leave(key, std::move(gate));
}

std::vector<NodePtr> Cluster::masters() {
  const std::lock_guard lock{courses_mutex_};
  std::vector<bool> is_master(places_.size());
  for (const auto owner : owners_)
    if (owner != nobody) is_master[owner] = true;
  std::vector<NodePtr> masters;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (is_master[i]) masters.push_back(places_[i]);
  return masters;
}

NodePtr Cluster::any_master() {
  const auto all = masters();
  const auto ready = std::ranges::find_if(
      all, [](const NodePtr& node) { return node->client->link().pulse().is_ready; });
  if (ready != all.end()) return *ready;
  return all.empty() ? nullptr : all.front();
}

bool Cluster::is_elsewhere(int slot, const NodeHearer& node) {
  const std::lock_guard lock{courses_mutex_};
  const auto owner = owners_[static_cast<std::size_t>(slot)];
  return owner != nobody && places_[owner]->hearer.get() != &node;
}

NodePtr Cluster::owner(std::size_t slot) {
  const std::lock_guard lock{courses_mutex_};
  return owners_[slot] == nobody ? nullptr : places_[owners_[slot]];
}

Cluster::Slots Cluster::slots_of(const NodePtr& node) {
  const std::lock_guard lock{courses_mutex_};
  Slots slots;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot)
    slots[slot] = owners_[slot] != nobody && (!node || places_[owners_[slot]] == node);
  return slots;
}

NodePtr Cluster::node_at(const topology::Endpoint& endpoint) {
  const std::lock_guard lock{mutex_};
  if (is_closed()) throw Error{Errc::closed, fmt::format("the Store of {} is closed", name_)};
  if (nodes_.size() >= refresher_.map()->nodes().size() + most_strangers &&
      !nodes_.contains(endpoint))
    throw Error{Errc::protocol, fmt::format("{} redirects to more nodes than it has", name_)};
  return node_here(endpoint, system_clock().steady());
}

bool Cluster::knows(const topology::Endpoint& endpoint) {
  const std::lock_guard lock{mutex_};
  return refresher_.map()->find(endpoint) != nullptr;
}

RedisOptions Cluster::options_to(const topology::Endpoint& endpoint) const {
  RedisOptions options = options_.node;
  options.kind = ServerKind::cluster_node;
  options.endpoint = {.host = endpoint.host, .port = endpoint.port, .unix_path = {}};
  options.database = 0;
  const auto* const known = refresher_.map()->find(endpoint);
  if (known && !known->hostname.empty() && net::is_numeric(endpoint.host))
    options.verified_as = known->hostname;
  return options;
}

std::shared_ptr<Replicas> Cluster::replicas_of(const NodePtr& node) {
  const std::lock_guard lock{mutex_};
  const auto known = nodes_.find(node->endpoint);
  if (is_closed() || known == nodes_.end() || known->second != node) return nullptr;  // it was left
  if (node->replicas) {
    doubt_replicas_of(*node);
    return node->replicas;
  }
  node->replicas = std::make_shared<Replicas>(
      node->client, [weak = weak_from_this()](const topology::Endpoint& replica) {
        const auto cluster = weak.lock();
        if (!cluster) return RedisOptions{};
        const std::lock_guard asking{cluster->mutex_};
        auto options = cluster->options_to(replica);
        options.is_replica = true;
        return options;
      });
  tell_replicas(*node);
  reactor_->add(node->replicas);
  return node->replicas;
}

void Cluster::doubt_replicas_of(Node& node) {
  const auto now = system_clock().steady();
  if (node.has_replicas || !node.missing_replicas.is_due(now)) return;
  refresher_.doubt(now);
  has_news_.store(true, std::memory_order_release);
  reactor_->wake();
}

void Cluster::tell_replicas(Node& node) {
  auto replicas = topology::serving_replicas_of(*refresher_.map(), node.endpoint);
  node.has_replicas = !replicas.empty();
  if (node.has_replicas) node.missing_replicas.found();
  node.replicas->follow(node.endpoint, std::move(replicas));
}

NodePtr Cluster::node_here(const topology::Endpoint& endpoint, SteadyTime now) {
  NodePtr& node = nodes_[endpoint];
  if (!node) {
    node = std::make_shared<Node>();
    node->endpoint = endpoint;
    node->hearer = std::make_shared<NodeHearer>(weak_from_this(), endpoint);
    node->client = std::make_shared<Client>(options_to(endpoint),
                                            Client::Company{reactor_, callbacks_, node->hearer});
    node->client->trackers().on_stale = [weak = std::weak_ptr{node->client}] {
      if (auto client = weak.lock()) spawn(ask_for_changes(std::move(client)));
    };
    node->client->join();
  }
  node->used = now;
  return node;
}

void Cluster::take_map(SteadyTime now) {
  const auto map = refresher_.map();
  std::vector<NodePtr> places;
  const auto place_of = [&](const NodePtr& node) {
    const auto found = std::ranges::find(places, node);
    if (found != places.end()) return static_cast<std::uint16_t>(found - places.begin());
    places.push_back(node);
    return static_cast<std::uint16_t>(places.size() - 1);
  };
  std::unordered_map<const topology::Node*, std::uint16_t> owners_seen;
  std::array<std::uint16_t, hash_slots> owners;
  const topology::Node* last = nullptr;
  std::uint16_t last_place = nobody;
  for (std::uint16_t slot = 0; slot < hash_slots; ++slot) {
    const auto* const owner = map->owner(slot);
    if (owner != last || slot == 0) {
      last = owner;
      last_place = nobody;
      if (owner && owner->endpoint) {
        const auto [seen, is_new] = owners_seen.try_emplace(owner);
        if (is_new) seen->second = place_of(node_here(*owner->endpoint, now));
        last_place = seen->second;
      }
    }
    owners[slot] = last_place;
  }

  const std::lock_guard lock{courses_mutex_};
  const bool is_gated = now < gates_until_;
  bool has_moved = false;
  for (std::uint16_t slot = 0; slot < hash_slots; ++slot) {
    const auto old = owners_[slot];
    const auto gate = is_gated ? before_[slot] : nobody;
    const bool moves =
        old != nobody && (owners[slot] == nobody || places[owners[slot]] != places_[old]);
    has_moved |= moves;
    const auto behind = moves ? old : gate;
    before_[slot] = behind == nobody ? nobody : place_of(places_[behind]);
  }
  owners_ = owners;
  places_ = std::move(places);
  if (has_moved) gates_until_ = now + gate_time;
  version_.fetch_add(1, std::memory_order_release);
}

// What calls and connections have heard.

void Cluster::moved(std::uint16_t slot, const topology::Endpoint& from,
                    const topology::Endpoint& to) {
  const std::lock_guard lock{mutex_};
  if (is_closed()) return;
  const auto* const owner = refresher_.map()->owner(slot);
  if (owner && owner->endpoint == to) return;  // many calls hear of it
  const auto now = system_clock().steady();
  if (refresher_.moved(now, slot, from, to)) take_map(now);
  has_news_.store(true, std::memory_order_release);
  reactor_->wake();
}

void Cluster::doubt() {
  const std::lock_guard lock{mutex_};
  refresher_.doubt(system_clock().steady());
  if (has_news_.exchange(true, std::memory_order_acq_rel)) return;
  reactor_->wake();
}

bool Cluster::is_foreign(const topology::Endpoint& endpoint, const std::string& id) {
  const std::lock_guard lock{known_mutex_};
  const auto* const here = known_ ? known_->find(endpoint) : nullptr;
  // Where servers tell no ids there are places in place of them.
  if (!here || here->id.empty() || here->id == to_string(endpoint)) return false;
  return here->id != id && !known_->find(id);
}

void Cluster::recognise_by(std::shared_ptr<const topology::ClusterMap> map) {
  const std::lock_guard lock{known_mutex_};
  known_.swap(map);
}

std::string Cluster::why_not(int slot) {
  const std::lock_guard lock{mutex_};
  const auto map = refresher_.map();
  const auto* const owner =
      slot == Operation::no_slot ? nullptr : map->owner(static_cast<std::uint16_t>(slot));
  if (owner && !owner->endpoint)
    return fmt::format("the cluster tells no {} of its master {}",
                       options_.node.tls ? "TLS port (tls-cluster) or hostname "
                                           "(cluster-announce-hostname)"
                                         : "hostname (cluster-announce-hostname)",
                       owner->id);
  auto why = refresher_.why_not();
  return why.empty() ? "the map leaves it out" : why;
}

void Cluster::node_lost(const topology::Endpoint& endpoint) {
  const std::lock_guard lock{mutex_};
  refresher_.lost(system_clock().steady(), endpoint);
  has_news_.store(true, std::memory_order_release);
  reactor_->wake();
}

void Cluster::node_connected(const topology::Endpoint& endpoint) {
  const std::lock_guard lock{mutex_};
  refresher_.is_back(system_clock().steady(), endpoint);
  has_news_.store(true, std::memory_order_release);
  reactor_->wake();
}

// The reactor's thread.

namespace {

/// True: it has answered.
Task<bool> ping(NodePtr node) {
  static constexpr std::string_view words[] = {"PING"};
  Request request;
  request.add(words);
  Value reply;
  Link& link = node->client->link();
  Operation operation{request, {&reply, 1}, system_clock().steady() + silence, {}, &link};
  operation.once = true;
  link.submit(operation);
  co_await operation.done;
  co_return !operation.failure;
}

Task<void> listen_for_life(NodePtr node) {
  auto pinging = ping(std::move(node));
  co_await pinging;
}

}  // namespace

SteadyTime Cluster::on_tick(SteadyTime now) {
  std::vector<std::pair<NodePtr, RefreshQuestion>> questions;
  std::vector<NodePtr> pinged;
  Changes changes;
  const bool looks = looks_.exchange(false, std::memory_order_acq_rel);
  {
    const std::lock_guard lock{mutex_};
    if (is_closed()) return SteadyTime::max();
    const auto awaits = [](const auto& one) {
      Client& client = *one.second->client;
      return client.link().pulse().awaits || client.awaits_copies();
    };
    if (next_look_ == SteadyTime::max() && std::ranges::any_of(nodes_, awaits))
      next_look_ = now + silence;
    const auto next = std::min(next_tick_, next_look_);
    // Every event of a connection ticks all.
    if (!has_news_.exchange(false, std::memory_order_acq_rel) && !looks && now < next) return next;
    if (now >= next_look_) pinged = look_for_silence(now);
    auto asked = refresher_.act(now);
    recognise_by(refresher_.is_lost(now) ? nullptr : refresher_.map());
    for (auto& question : asked) {
      auto node = node_here(question.node, now);
      questions.emplace_back(std::move(node), std::move(question));
    }
    changes = take_changes(now);
    next_tick_ = refresher_.wakes();
    leave_idle_nodes(now, changes);
  }
  for (auto& [node, question] : questions) spawn(ask(std::move(node), std::move(question)));
  for (const auto& node : pinged) spawn(listen_for_life(node));
  if (looks || changes.is_new_map || changes.is_replaced) follow(changes);
  for (const auto& node : changes.left) {
    if (node->replicas) node->replicas->close();
    node->client->abandon();
  }
  const std::lock_guard lock{mutex_};
  return std::min(next_tick_, next_look_);
}

Cluster::Changes Cluster::take_changes(SteadyTime now) {
  Changes changes;
  const auto map = refresher_.map();
  if (map != followed_) {
    changes.is_new_map = true;
    changes.moved = topology::difference(*followed_, *map).moved;
    for (const auto& node : followed_->nodes()) {
      if (!node.endpoint || !followed_->has_slots(node)) continue;
      const auto* const after = map->find(*node.endpoint);
      if (after && map->has_slots(*after)) continue;
      if (const auto known = nodes_.find(*node.endpoint); known != nodes_.end())
        changes.deprived.push_back(known->second);
    }
    for (const auto& node : changes.deprived) node->used = now;
    followed_ = map;
    for (const auto& [endpoint, node] : nodes_)
      if (node->replicas) tell_replicas(*node);
  }
  changes.is_replaced =
      std::exchange(replacements_followed_, refresher_.replacements()) != refresher_.replacements();
  for (const auto& [endpoint, node] : nodes_) changes.nodes.push_back(node);
  return changes;
}

void Cluster::leave_idle_nodes(SteadyTime now, Changes& changes) {
  const auto map = refresher_.map();
  std::erase_if(nodes_, [&](const auto& one) {
    const auto& [endpoint, node] = one;
    const auto* const known = map->find(endpoint);
    if (known && map->has_slots(*known)) return false;
    const auto leaves = node->used + kept_for;
    next_tick_ = std::min(next_tick_, std::max(leaves, now + silence));
    if (now < leaves || node->hearer->any() || node->client->trackers().any()) return false;
    const auto links = node->client->links();
    if (!std::ranges::all_of(links, [](const auto& link) { return link->is_free(); })) return false;
    changes.left.push_back(node);
    return true;
  });
}

/// Those that owe nothing but the replies to batches that end with WAIT: a PING has to tell.
std::vector<NodePtr> Cluster::look_for_silence(SteadyTime now) {
  bool is_quiet = true;
  std::vector<NodePtr> to_be_pinged;
  for (const auto& [endpoint, node] : nodes_) {
    const auto pulse = node->client->link().pulse();
    const bool has_spoken = pulse.heard != node->heard;
    const bool is_silent = pulse.awaits && node->awaited && !has_spoken;
    const bool was_silent = node->silent_since.load(std::memory_order_relaxed) != SteadyTime::max();
    if (is_silent && !was_silent) refresher_.lost(now, endpoint);
    if (!is_silent && was_silent && has_spoken) refresher_.is_back(now, endpoint);
    node->silent_since.store(is_silent ? pulse.heard : SteadyTime::max(),
                             std::memory_order_relaxed);
    node->heard = pulse.heard;
    node->awaited = pulse.awaits;
    const bool awaits_copies = node->client->awaits_copies();
    if (awaits_copies && !pulse.awaits) to_be_pinged.push_back(node);
    is_quiet &= !pulse.awaits && !has_spoken && !awaits_copies;
  }
  next_look_ = is_quiet ? SteadyTime::max() : now + silence;
  return to_be_pinged;
}

Task<void> Cluster::ask(NodePtr node, RefreshQuestion question) {
  const auto self = shared_from_this();
  Request request{Request::Kind::batch};
  for (const auto& command : topology::commands_of(question.form)) request.add(command);
  std::vector<Value> replies(request.commands());
  Link& link = node->client->link();
  Operation operation{request, replies, question.deadline, {.repeatable = true}, &link};
  operation.once = true;
  link.submit(operation);
  co_await operation.done;
  self->take(question, operation.failure, replies);
}

void Cluster::take(const RefreshQuestion& question, const std::exception_ptr& failure,
                   std::span<const Value> replies) {
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (is_closed()) return;
  try {
    if (failure) std::rethrow_exception(failure);
    if (refresher_.answered(now, question.id, replies)) take_map(now);
    refusals_.erase(question.node);
  } catch (const Error& error) {
    refresher_.failed(now, question.id, error.message());
    if (refresher_.map()->knows_nothing() && now < question.deadline)
      refusals_.insert_or_assign(question.node, error);
  }
  told_.notify_all();
  has_news_.store(true, std::memory_order_release);
  reactor_->wake();
}

namespace {

/// A node without slots that does not answer keeps the calls that it has for ever.
Task<void> probe(ClusterPtr cluster, NodePtr node) {
  auto pinging = ping(node);
  if (co_await pinging || cluster->is_closed()) co_return;
  for (const auto& one : node->client->links())
    one->drop("it is silent, and another node has its slots");
  cluster->look();
}

}  // namespace

void Cluster::follow(const Changes& changes) {
  for (const auto& node : changes.nodes)
    for (const auto& link : node->client->links())
      link->return_calls([&](const Operation& call) {
        // Who was redirected is ahead of the map, until there is another one.
        return (!call.redirected || changes.is_new_map) && is_elsewhere(call.slot, *node->hearer);
      });
  for (const auto& node : changes.deprived) spawn(probe(shared_from_this(), node));
  channels_.check(shared_from_this());
  if (changes.is_new_map) trackers_.follow(masters());
  if (!changes.moved.empty() || changes.is_replaced) watchers_.tell_reconnected();
}

}  // namespace sluice::redis
