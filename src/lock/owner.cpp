#include "lock/owner.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/random.hpp"

namespace sluice {
namespace lock {

std::string new_owner_id() {
  static const std::string prefix = random_uuid() + ':';
  static std::atomic<std::uint64_t> last{0};
  const fmt::format_int number{last.fetch_add(1, std::memory_order_relaxed) + 1};
  std::string id;
  id.reserve(prefix.size() + number.size());
  return id.append(prefix).append(number.data(), number.size());
}

std::string new_request_id() {
  static const std::string prefix = random_hex_128() + '-';
  static std::atomic<std::uint64_t> last{0};
  const fmt::format_int number{last.fetch_add(1, std::memory_order_relaxed) + 1};
  std::string id;
  id.reserve(prefix.size() + number.size());
  return id.append(prefix).append(number.data(), number.size());
}

std::shared_ptr<Hold> OwnerState::find(const Watchdog& watchdog, const Names& names) {
  const std::lock_guard lock{mutex};
  for (const auto& weak : holds) {
    auto hold = weak.lock();
    if (hold && hold->watchdog.get() == &watchdog && hold->names->key == names.key && hold->state == HoldState::held)
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

}  // namespace lock

Owner::Owner() : state_(std::make_shared<lock::OwnerState>()) { state_->id.text = lock::new_owner_id(); }

const OwnerId& Owner::id() const noexcept { return state_->id; }

}  // namespace sluice
