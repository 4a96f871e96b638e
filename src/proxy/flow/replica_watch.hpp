/// The replicas of one master that reads may go to: asks how far they are, as topology::Freshness
/// decides, over the lines of a thread that asks for masters anyway.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/flow/asking_lines.hpp"
#include "topology/freshness.hpp"

namespace sluice::proxy::flow {

/// Threads: that of the lines, which outlive it.
class ReplicaWatch {
 public:
  struct Replica {
    topology::Endpoint endpoint;
    SteadyTime caught_up;  ///< with the master; min(): it is not known, or it must not be read from
  };
  /// As AskingLines::ask() has it.
  using Certified = std::function<std::string(const topology::Endpoint&)>;

  ReplicaWatch(AskingLines& lines, std::chrono::milliseconds max_lag, Certified certified = {});

  /// Somebody reads from them: without it for a while nobody is asked.
  void want(SteadyTime now);
  /// Those that there are now; the master may be among them. Nothing: no master is known.
  void follow(const std::optional<topology::Endpoint>& master,
              std::vector<topology::Endpoint> replicas);
  /// Asks. When to come again.
  SteadyTime act(SteadyTime now);
  std::vector<Replica> told() const;

 private:
  void ask(const topology::FreshnessQuestion& question);

  AskingLines& lines_;
  Certified certified_;
  std::shared_ptr<topology::Freshness> freshness_;  // which answers find, if it is still there
  std::optional<topology::Endpoint> master_;
  std::vector<topology::Endpoint> replicas_;
};

}  // namespace sluice::proxy::flow
