/// Hears the releases of one lock on all its nodes.
///
/// A release is heard when a majority of nodes has told of it: those who gave a minority back tell
/// of that too, and nobody should run for it.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "lock/quorum/round.hpp"

namespace sluice::lock {

class ReleaseEar {
 public:
  /// Subscribes in the background. A node that fails is not heard.
  ReleaseEar(const Round::Nodes& nodes, const std::string& channel);

  /// Until a release has been heard since the last call, `until`, or `stop`.
  Task<void> hear(Clock& clock, SteadyTime until, std::stop_token stop);

 private:
  struct State {
    std::mutex mutex;
    std::vector<Listener> listeners;  // of each node
    std::vector<bool> told;           // by each node
    std::shared_ptr<Completion> waiting;

    bool is_told() const;
    void tell(std::size_t node);
  };
  static Task<void> listen(std::shared_ptr<State> state, Store& node, std::size_t which,
                           std::string channel);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace sluice::lock
