#include "loop/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace sluice::loop {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void fail(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

constexpr std::uint32_t events_of_stream = EPOLLIN | EPOLLRDHUP | EPOLLET;

void watch_descriptor(int epoll, int descriptor, std::uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

}  // namespace

Loop::Loop(Clock& clock)
    : clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      now_(clock.steady()),
      scratch_(new char[scratch_head + scratch_size]) {
  watch_descriptor(epoll_.number(), wake_.number(), EPOLLIN, nullptr);
}

Loop::~Loop() { graveyard_.clear(); }

void Loop::add(int descriptor, EventHandler& handler) {
  watch_descriptor(epoll_.number(), descriptor, events_of_stream | EPOLLOUT, &handler);
}

void Loop::tell_of_room(int descriptor, EventHandler& handler, bool tells) noexcept {
  epoll_event event{};
  event.events = events_of_stream | (tells ? EPOLLOUT : 0U);
  event.data.ptr = &handler;
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, descriptor, &event);
}

void Loop::add_listener(int descriptor, EventHandler& handler) {
  watch_descriptor(epoll_.number(), descriptor, EPOLLIN | EPOLLEXCLUSIVE, &handler);
}

void Loop::remove(int descriptor) noexcept {
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void Loop::bury(std::unique_ptr<EventHandler> handler) {
  std::erase(to_flush_, handler.get());
  std::erase(to_resume_, handler.get());
  graveyard_.push_back(std::move(handler));
}

Loop::TimerId Loop::at(SteadyTime when, std::function<void()> callback) {
  const TimerId timer{when, ++last_timer_};
  timers_.emplace(timer, std::move(callback));
  return timer;
}

void Loop::post(std::function<void()> task) {
  {
    const std::lock_guard lock{mutex_};
    posted_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.number(), &one, sizeof one));  // full: it is awake anyway
}

int Loop::wait_time(milliseconds patience) const noexcept {
  if (!to_resume_.empty()) return 0;
  if (!timers_.empty())
    patience = std::min(
        patience, std::chrono::ceil<milliseconds>(timers_.begin()->first.first - clock_.steady()));
  return static_cast<int>(
      std::clamp<std::int64_t>(patience.count(), 0, std::numeric_limits<int>::max()));
}

void Loop::turn(milliseconds patience) {
  std::array<epoll_event, 256> events;
  const int count =
      ::epoll_wait(epoll_.number(), events.data(), events.size(), wait_time(patience));
  if (count < 0 && errno != EINTR) fail("epoll_wait");
  now_ = clock_.steady();
  resume();
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (!event.data.ptr) {
      run_posted();
      continue;
    }
    static_cast<EventHandler*>(event.data.ptr)
        ->ready({(event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                 (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0});
  }
  run_timers();
  if (before_flush_) before_flush_();
  flush_all();
  graveyard_.clear();
}

void Loop::resume() {
  resuming_.swap(to_resume_);
  for (EventHandler* handler : resuming_) {
    handler->again_is_due_ = false;
    handler->ready({.readable = true, .writable = false, .hung_up = false});
  }
  resuming_.clear();
}

void Loop::run_posted() {
  std::uint64_t count = 0;
  static_cast<void>(!::read(wake_.number(), &count, sizeof count));
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock{mutex_};
    tasks.swap(posted_);
  }
  for (auto& task : tasks) task();
}

void Loop::run_timers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    const auto callback = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    callback();
  }
}

void Loop::flush_all() {
  while (!to_flush_.empty()) {  // a flush may fail, and the failure makes other handlers write
    flushing_.swap(to_flush_);
    for (std::size_t i = 0; i < flushing_.size(); ++i) {
      flushing_[i]->flush_is_due_ = false;
      flushing_[i]->flush();
    }
    flushing_.clear();
  }
}

}  // namespace sluice::loop
