/// Who is told of changed keys in a cluster: each master tells of its own, and a tracker is told
/// from when all of them tell until one does not.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "redis/trackers.hpp"

namespace sluice::redis {

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
    void end();

   private:
    struct AtNode {
      std::shared_ptr<Trackers::Tracker> tracker;
      bool is_told = false;
    };
    void take(const Node* from, const Message& message);
    /// REQUIRES: mutex_ is held
    bool is_told_by_all() const;

    const std::string prefix_;
    Handler handler_;
    std::mutex following_;  // before mutex_
    std::mutex mutex_;
    bool is_told_ = false;
    bool has_ended_ = false;
    std::map<std::shared_ptr<Node>, AtNode> nodes_;
  };

  void add(std::shared_ptr<Tracker> tracker, const std::vector<std::shared_ptr<Node>>& masters);
  void remove(const std::shared_ptr<Tracker>& tracker);
  void follow(const std::vector<std::shared_ptr<Node>>& masters);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Tracker>> all_;
};

}  // namespace sluice::redis
