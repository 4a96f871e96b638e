/// The parts of a pool, one in each worker, for what is asked of all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace sluice::proxy::flow {

class Pool;

/// Threads: any. enter() and leave() are called by the part, in its worker's thread or when that
/// has ended.
class PoolParts : public std::enable_shared_from_this<PoolParts> {
 public:
  /// Runs in a part's thread; null: the part is gone since.
  using Task = std::function<void(Pool*)>;

  void enter(Pool& part);
  void leave(Pool& part) noexcept;

  /// One call for each part. How many there are.
  std::size_t post_to_all(const Task& task);
  /// False: it is gone, and nothing is called.
  bool post_to(const Pool* part, const Task& task);

 private:
  void post(Pool& part, Task task);  // under mutex_, so that its loop is there

  std::mutex mutex_;
  std::vector<Pool*> parts_;
};

}  // namespace sluice::proxy::flow
