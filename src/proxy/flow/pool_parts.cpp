#include "proxy/flow/pool_parts.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"

namespace sluice::proxy::flow {

void PoolParts::enter(Pool& part) {
  const std::lock_guard lock{mutex_};
  parts_.push_back(&part);
}

void PoolParts::leave(Pool& part) noexcept {
  const std::lock_guard lock{mutex_};
  std::erase(parts_, &part);
}

void PoolParts::post(Pool& part, Task task) {
  part.loop().post([self = shared_from_this(), &part, task = std::move(task)] {
    const auto is_there = [&] {
      const std::lock_guard lock{self->mutex_};
      return std::ranges::find(self->parts_, &part) != self->parts_.end();
    };
    task(is_there() ? &part : nullptr);  // it leaves in this thread alone
  });
}

std::size_t PoolParts::post_to_all(const Task& task) {
  const std::lock_guard lock{mutex_};
  for (Pool* const part : parts_) post(*part, task);
  return parts_.size();
}

bool PoolParts::post_to(const Pool* part, const Task& task) {
  const std::lock_guard lock{mutex_};
  const auto found = std::ranges::find(parts_, part);
  if (found == parts_.end()) return false;
  post(**found, task);
  return true;
}

}  // namespace sluice::proxy::flow
