#include "proxy/process/task_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

Error ending() { return Error{Errc::closed, "the proxy is ending"}; }

}  // namespace

TaskQueue::TaskQueue() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}

TaskQueue::~TaskQueue() {
  end();
  ::close(wake_);
}

std::string TaskQueue::ask(Job job) {
  Task task{[this, job = std::move(job)] {
    {
      const std::lock_guard lock{mutex_};
      if (ended_) throw ending();
    }
    return job();
  }};
  auto done = task.get_future();
  {
    const std::lock_guard lock{mutex_};
    if (ended_) throw ending();
    asked_.push_back(std::move(task));
  }
  static_cast<void>(::eventfd_write(wake_, 1));
  return done.get();
}

std::deque<TaskQueue::Task> TaskQueue::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(asked_, {});
}

void TaskQueue::run_all() {
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(wake_, &count));
  for (auto& task : take()) task();
}

void TaskQueue::end() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  for (auto& task : take()) task();  // each throws ending()
}

}  // namespace sluice::proxy::process
