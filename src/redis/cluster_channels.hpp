/// Who listens to which channel of a cluster, and at which node.
///
/// Each channel is subscribed at the master of its slot, by a command of its own, also those that
/// all nodes would tell (PUBLISH counts the subscribers of one node). Where that is another node
/// now, the connection was lost, or the server has ended the subscription, it is subscribed anew;
/// then the gap is told.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "redis/channels.hpp"
#include "topology/endpoint.hpp"

namespace sluice::redis {

class Cluster;
struct Node;

/// Threads: any. Handlers are called without a lock of this class, by the thread that reads.
class ClusterChannels {
 public:
  using Kind = Hearer::Kind;

  /// Done when a node has confirmed it.
  static Task<Listener> listen(std::shared_ptr<Cluster> cluster, Kind kind, std::string channel,
                               MessageHandler function);

  /// Subscribes anew what has to be. By the reactor's thread.
  void check(const std::shared_ptr<Cluster>& cluster);

  // What a node tells.
  void confirm(const topology::Endpoint& at, Kind kind, const std::string& channel);
  void deliver(const topology::Endpoint& at, Kind kind, const Message& message);
  /// False: it was not subscribed there any more.
  bool ended(const topology::Endpoint& at, Kind kind, const std::string& channel);
  void lost(const topology::Endpoint& at);

 private:
  class Registration;
  using Key = std::pair<Kind, std::string>;
  struct Place {
    std::shared_ptr<Node> node;  ///< that was asked last
    bool is_confirmed = false;   ///< by it
    bool has_gap = false;        ///< it was subscribed before
    bool is_asked = false;       ///< a coroutine subscribes it anew
  };

  /// Until a node has confirmed it, or nobody listens any more.
  static Task<void> subscribe(std::shared_ptr<Cluster> cluster, Key key, SteadyTime deadline);
  static Task<void> subscribe_anew(std::shared_ptr<Cluster> cluster, Key key);
  static Task<void> unsubscribe(std::shared_ptr<Node> node, Key key);

  Channels& handlers(Kind kind) noexcept { return handlers_[kind == Kind::sharded ? 1 : 0]; }
  bool is_wanted(const Key& key);
  bool ask_at(const Key& key, const std::shared_ptr<Node>& node);
  void asked(const Key& key);
  /// REQUIRES: mutex_ is held
  static void put(Place& place, std::shared_ptr<Node> node);
  static void end(Place& place);
  std::shared_ptr<Node> forget(const Key& key);

  std::array<Channels, 2> handlers_;
  std::mutex mutex_;  // before no other lock
  std::map<Key, Place> places_;
};

}  // namespace sluice::redis
