/// Who is told of changed keys in a cluster: each master tells of its own, and a tracker is told
/// from when all of them tell until one does not. So does a node to which calls are redirected
/// before it is a master, as that of a slot that is under way, until the next map.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "redis/trackers.hpp"

namespace sluice::redis {

class Client;
struct Node;

/// Threads: any.
class ClusterTrackers {
 public:
  class Tracker : public std::enable_shared_from_this<Tracker> {
   public:
    Tracker(std::string prefix, MessageHandler function)
        : prefix_(std::move(prefix)), handler_(std::move(function)) {}

    /// The masters are these now.
    void follow(const std::vector<std::shared_ptr<Node>>& masters);
    /// Besides these, `node`.
    void follow_too(const std::shared_ptr<Node>& node);
    void end();

   private:
    struct AtNode {
      std::shared_ptr<Client> client;
      std::shared_ptr<Trackers::Tracker> tracker;
      bool is_told = false;
    };
    /// These are followed from now on. REQUIRES: following_ is held
    void change(const std::vector<std::shared_ptr<Node>>& nodes);
    void take(const Node* from, const Message& message);
    /// REQUIRES: mutex_ is held
    bool is_told_by_all() const;

    const std::string prefix_;
    Handler handler_;
    std::mutex following_;  // before mutex_
    std::mutex mutex_;
    bool is_told_ = false;
    bool has_ended_ = false;  // under following_
    std::map<std::shared_ptr<Node>, AtNode> nodes_;
  };

  void add(std::shared_ptr<Tracker> tracker, const std::vector<std::shared_ptr<Node>>& masters);
  void remove(const std::shared_ptr<Tracker>& tracker);
  void follow(const std::vector<std::shared_ptr<Node>>& masters);
  /// A call is about to be redirected there.
  void follow_too(const std::shared_ptr<Node>& node);

 private:
  std::vector<std::shared_ptr<Tracker>> all();

  std::mutex mutex_;
  std::vector<std::shared_ptr<Tracker>> all_;
};

}  // namespace sluice::redis
