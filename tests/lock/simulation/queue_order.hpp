/// First come, first served, as the server has it: whoever gets in was before all who wait, and
/// those who wait keep their order.
#pragma once

#include <string>
#include <vector>

#include "lock/simulation/sim_server.hpp"

namespace sluice::simulation {

class QueueOrder {
 public:
  /// Of Redisson's fair lock of that name.
  explicit QueueOrder(const std::string& name);

  /// After every execution.
  void look(SimServer& server, Journal& journal);

 private:
  using Names = std::vector<std::string>;

  const std::string lock_;
  const std::string queue_;
  Names waits_;
  Names holds_;
};

}  // namespace sluice::simulation
