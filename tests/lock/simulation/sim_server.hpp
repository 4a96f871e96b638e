/// The server of a simulation: an embedded engine that can be down, and can come back without its
/// data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "lock/simulation/journal.hpp"
#include "lock/simulation/mutation.hpp"

namespace sluice::simulation {

class SimServer {
 public:
  SimServer(VirtualClock& clock, Journal& journal, const Mutation& mutation,
            std::function<void()> after_step);

  /// Executes and replies: an error is a Value in its place.
  std::vector<Value> execute(const Batch& batch);
  /// To look at its state from outside.
  Value look(std::initializer_list<std::string_view> command);
  Store& store() noexcept { return *engine_; }
  const Clock& clock() const noexcept { return clock_; }

  /// The process ends; connections of this life are dead.
  void go_down(bool forgets);
  void come_back();
  bool is_up() const noexcept { return up_; }
  unsigned life() const noexcept { return life_; }
  /// When it last lost its data, by its own clock; before any time: never.
  WallTime forgot_at() const noexcept { return forgot_at_; }
  SteadyTime forgot_at_steady() const noexcept { return forgot_at_steady_; }
  unsigned first_life_of_data() const noexcept { return first_life_of_data_; }

 private:
  void write_down(const Batch& batch, const std::vector<Value>& replies);

  VirtualClock& clock_;
  Journal& journal_;
  const std::function<void()> after_step_;
  Scripts scripts_;
  std::unique_ptr<engine::EmbeddedStore> engine_;
  bool up_ = true;
  unsigned life_ = 0;
  WallTime forgot_at_{};
  SteadyTime forgot_at_steady_{};
  unsigned first_life_of_data_ = 0;
};

}  // namespace sluice::simulation
