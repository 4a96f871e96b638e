/// What a MultiHeld holds: for each script that took names, its holds.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "lock/multi/group.hpp"
#include "sluice/multi_lock.hpp"

namespace sluice::lock {

class MultiHold {
 public:
  explicit MultiHold(std::size_t names) : names_(names) {}
  /// Releases in the background what is held.
  ~MultiHold();
  MultiHold(const MultiHold&) = delete;
  MultiHold& operator=(const MultiHold&) = delete;

  /// `places`: of each hold among the names as given.
  void add(std::shared_ptr<Group> group, Holds holds, const std::vector<std::size_t>& places);

  std::chrono::nanoseconds valid_for() const noexcept;
  /// In the order of the names as given.
  const std::vector<std::shared_ptr<Hold>>& holds() const noexcept { return names_; }

  /// False: at least one was lost before. Once.
  Task<bool> release();
  /// In a child of the process that took them: they are its parent's.
  bool is_inherited() const noexcept;

  std::stop_token lost();
  void on_lost(std::function<void(LostCause)> callback);
  void on_risk(const std::function<void(Risk)>& callback);

 private:
  struct Taken {
    std::shared_ptr<Group> group;
    Holds holds;
  };
  std::vector<Taken> taken_;
  Holds names_;
  std::mutex mutex_;
  std::optional<std::stop_source> stop_;  // made when somebody asks for it
};

}  // namespace sluice::lock
