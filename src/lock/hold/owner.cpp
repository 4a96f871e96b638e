#include "lock/hold/owner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fork.hpp"
#include "base/random.hpp"

namespace sluice {
namespace lock {

namespace {

/// A random prefix and a count of its own for each thread: no lock, and asks the kernel once. A
/// child draws anew, or it would say what its parent says.
class Numbered {
 public:
  explicit Numbered(std::string (*draw)()) : draw_(draw) {}

  std::string next() {
    if (prefix_.empty() || forks_ != fork_count()) {
      prefix_ = draw_();
      forks_ = fork_count();
    }
    const fmt::format_int number{++last_};
    std::string id;
    id.reserve(prefix_.size() + number.size());
    return id.append(prefix_).append(number.data(), number.size());
  }

 private:
  std::string (*draw_)();
  std::string prefix_;
  std::uint64_t last_ = 0;
  unsigned forks_ = 0;
};

}  // namespace

std::string new_owner_id() {
  thread_local Numbered ids{[] { return random_uuid() + ':'; }};
  return ids.next();
}

std::string new_request_id() {
  thread_local Numbered ids{[] { return random_hex_128() + '-'; }};
  return ids.next();
}

std::shared_ptr<Hold> OwnerState::find(const Watchdog& watchdog, const Resource& resource) {
  const std::lock_guard lock{mutex};
  for (const auto& weak : holds) {
    auto hold = weak.lock();
    if (hold && hold->watchdog.get() == &watchdog && hold->resource->key() == resource.key() &&
        &hold->resource->renewal() == &resource.renewal() && hold->state == HoldState::held &&
        hold->forks == fork_count())
      return hold;
  }
  return nullptr;
}

void OwnerState::add(const std::shared_ptr<Hold>& hold) {
  const std::lock_guard lock{mutex};
  std::erase_if(holds, [](const std::weak_ptr<Hold>& weak) {
    const auto other = weak.lock();
    return !other || other->state != HoldState::held;
  });
  holds.push_back(hold);
}

bool OwnerState::begin_wait(const Resource& resource) {
  Waited waited{&resource.store(), resource.key()};
  const std::lock_guard lock{mutex};
  if (std::ranges::find(waits_for_, waited) != waits_for_.end()) return false;
  waits_for_.push_back(std::move(waited));
  return true;
}

void OwnerState::end_wait(const Resource& resource) {
  const std::lock_guard lock{mutex};
  std::erase(waits_for_, Waited{&resource.store(), resource.key()});
}

}  // namespace lock

Owner::Owner() : state_(std::make_shared<lock::OwnerState>()) {
  state_->id.text = lock::new_owner_id();
}

const OwnerId& Owner::id() const noexcept { return state_->id; }

}  // namespace sluice
