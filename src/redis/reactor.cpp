#include "redis/reactor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/descriptor.hpp"
#include "base/event.hpp"
#include "base/thread.hpp"

namespace sluice::redis {
namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) fail_system_call(what, errno);
  return descriptor;
}

epoll_event event_for(Source* source, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events | EPOLLONESHOT;
  event.data.ptr = source;
  return event;
}

}  // namespace

Reactor::Wakeup::Wakeup()
    : descriptor_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {}
Reactor::Wakeup::~Wakeup() { ::close(descriptor_); }

void Reactor::Wakeup::set() const noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is at its limit: the thread is being woken already.
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

void Reactor::Wakeup::take() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto drained = ::read(descriptor_, &count, sizeof count);
}

Reactor::Reactor() : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  epoll_event event{};
  event.events = EPOLLIN;
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_->descriptor(), &event), "epoll_ctl");
}

Reactor::~Reactor() {
  stop();
  if (thread_.joinable()) thread_.detach();  // this is that thread, at its very end
  ::close(epoll_);
}

void Reactor::start(std::shared_ptr<void> owner) {
  thread_ = start_thread([this, owner = std::move(owner)]() mutable {
    run();
    owner.reset();  // `this` may be gone after this
  });
}

void Reactor::stop() {
  ending_.store(true, std::memory_order_release);
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return;
  wake();
  thread_.join();
}

void Reactor::add(std::shared_ptr<Source> source) {
  {
    const std::lock_guard lock{mutex_};
    sources_.push_back(std::move(source));
  }
  wake();
}

void Reactor::remove(const Source& source) {
  const std::lock_guard lock{mutex_};
  std::erase_if(sources_, [&](const auto& one) { return one.get() == &source; });
}

void Reactor::watch(int descriptor, Source& source, std::uint32_t events) {
  auto event = event_for(&source, events);
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

void Reactor::rearm(int descriptor, Source& source, std::uint32_t events) noexcept {
  auto event = event_for(&source, events);
  static_cast<void>(::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event));
}

void Reactor::forget(int descriptor) noexcept {
  static_cast<void>(::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr));
}

std::shared_ptr<Resolution> Reactor::resolve(const net::Endpoint& server) {
  std::erase_if(resolutions_, [](const auto& one) { return one.second->answer().has_value(); });
  const auto found = std::ranges::find(
      resolutions_, server, [](const auto& one) -> const auto& { return one.first; });
  if (found != resolutions_.end()) return found->second;
  auto started = Resolution::start(server, [wakeup = wakeup_] { wakeup->set(); });
  resolutions_.emplace_back(server, started);
  return started;
}

void Reactor::run() {
  const NoBlocking serving{"reads the replies of a Store and connects it"};
  busy_.store(true, std::memory_order_seq_cst);
  while (!ending_.load(std::memory_order_acquire)) {
    // A caller that sets an earlier deadline while the sources are asked finds this and wakes us.
    sleeps_until_.store(SteadyTime::max().time_since_epoch().count(), std::memory_order_seq_cst);
    const auto next = tick_all();
    sleeps_until_.store(next.time_since_epoch().count(), std::memory_order_seq_cst);
    if (!ending_.load(std::memory_order_acquire)) sleep_until(next);
  }
  ticked_.clear();
  busy_.store(false, std::memory_order_release);
}

SteadyTime Reactor::tick_all() {
  {
    const std::lock_guard lock{mutex_};
    copied_ = sources_;
  }
  ticked_.swap(copied_);
  copied_.clear();  // without the lock: it may be the end of one
  auto next = SteadyTime::max();
  const auto now = system_clock().steady();
  for (const auto& source : ticked_) next = std::min(next, source->on_tick(now));
  return next;
}

void Reactor::sleep_until(SteadyTime when) {
  int timeout = -1;
  if (when != SteadyTime::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - system_clock().steady());
    timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }
  std::array<epoll_event, 16> events;
  busy_.store(false, std::memory_order_release);
  const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout);
  busy_.store(true, std::memory_order_seq_cst);
  for (int i = 0; i < ready; ++i) {
    if (auto* const source = static_cast<Source*>(events[static_cast<std::size_t>(i)].data.ptr)) {
      source->on_ready(events[static_cast<std::size_t>(i)].events);
    } else {
      wakeup_->take();
    }
  }
}

}  // namespace sluice::redis
