/// Many Tasks at once.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/task.hpp"

namespace sluice {

/// Starts all tasks at once and waits for all; results in the order of the tasks.
/// Throws the first failure, after all have ended.
Task<void> when_all(std::vector<Task<void>> tasks);

template <class T>
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<std::optional<T>> slots(tasks.size());
  std::vector<Task<void>> fillers;
  fillers.reserve(tasks.size());
  const auto fill = [](Task<T>& task, std::optional<T>& slot) -> Task<void> {
    slot.emplace(co_await task);
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) fillers.push_back(fill(tasks[i], slots[i]));
  auto all = when_all(std::move(fillers));
  co_await all;
  std::vector<T> results;
  results.reserve(slots.size());
  for (auto& slot : slots) results.push_back(std::move(*slot));
  co_return results;
}

}  // namespace sluice
