#include "proxy/process/errands.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

Error ending() { return Error{Errc::closed, "the proxy is ending"}; }

}  // namespace

Errands::Errands() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}

Errands::~Errands() {
  end();
  ::close(wake_);
}

std::string Errands::ask(Errand errand) {
  Task task{[this, errand = std::move(errand)] {
    {
      const std::lock_guard lock{mutex_};
      if (ended_) throw ending();
    }
    return errand();
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

std::deque<Errands::Task> Errands::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(asked_, {});
}

void Errands::run_all() {
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(wake_, &count));
  for (auto& task : take()) task();
}

void Errands::end() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  for (auto& task : take()) task();  // each says that it is too late
}

}  // namespace sluice::proxy
