/// What is played beside the locks that somebody holds: a latch, a rate limiter, a fence, each as a
/// SimLock that is entered and left at once. What must not be is thrown as Wrong.
#pragma once

#include <stdexcept>

#include "lock/simulation/primitive.hpp"

namespace sluice::simulation {

class Wrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::unique_ptr<SimLock> open_latch(Stores stores, const std::string& name, const Profile& profile);
std::unique_ptr<SimLock> open_limiter(Stores stores, const std::string& name,
                                      const Profile& profile);
std::unique_ptr<SimLock> open_fence(Stores stores, const std::string& name, const Profile& profile);

}  // namespace sluice::simulation
