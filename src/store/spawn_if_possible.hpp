/// A Task that a destructor begins for the sake of order. Nothing is wrong where it is not run.
#pragma once

#include "sluice/task.hpp"

namespace sluice {

/// Runs the Task that `begin` gives; nothing, where there is no memory for it. What it throws is
/// forgotten.
template <class Begin>
void spawn_if_possible(Begin begin) noexcept try {
  spawn(begin(), [](std::exception_ptr) {});
} catch (const std::exception&) {
}

}  // namespace sluice
