/// What other threads want done by the one that runs the process: it alone reloads, upgrades and
/// drains.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>

namespace sluice::proxy {

class Errands {
 public:
  using Errand = std::function<std::string()>;

  Errands();
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  /// Any other thread: returns what `errand` returned, or throws what it threw, once run_all() has
  /// come to it. Throws Error{closed} after end().
  std::string ask(Errand errand);

  /// Readable when somebody asked.
  int descriptor() const noexcept { return wake_; }
  void run_all();
  /// Nobody waits any more, nor comes to wait.
  void end();

 private:
  using Task = std::packaged_task<std::string()>;
  std::deque<Task> take();

  const int wake_;
  std::mutex mutex_;
  std::deque<Task> asked_;
  bool ended_ = false;
};

}  // namespace sluice::proxy
