/// Work that other threads leave to the main thread, which alone reloads, upgrades and drains.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>

namespace sluice::proxy::process {

class TaskQueue {
 public:
  using Job = std::function<std::string()>;

  TaskQueue();
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Any thread but the main one: waits for run_all(), returns what `job` returned or throws what
  /// it threw. Throws Error{closed} after end().
  std::string ask(Job job);

  /// Readable when there is work.
  int descriptor() const noexcept { return wake_; }
  void run_all();
  /// Every ask(), now waiting or to come, throws.
  void end();

 private:
  using Task = std::packaged_task<std::string()>;
  std::deque<Task> take();

  const int wake_;
  std::mutex mutex_;
  std::deque<Task> asked_;
  bool ended_ = false;
};

}  // namespace sluice::proxy::process
