#include "lock/wait/waiting_room.hpp"

#include <utility>

namespace sluice::lock {

WaitingRoom::Seat::Seat(std::shared_ptr<WaitingRoom> room) : room_(std::move(room)) {
  const std::lock_guard lock{room_->mutex_};
  place_ = room_->seats_.insert(room_->seats_.end(), this);
}

WaitingRoom::Seat::~Seat() {
  bool unanswered = false;
  {
    const std::lock_guard lock{room_->mutex_};
    room_->seats_.erase(place_);
    unanswered = called_;
  }
  if (unanswered) room_->call_one();
}

void WaitingRoom::Seat::rise() {
  const std::lock_guard lock{room_->mutex_};
  if (std::exchange(room_->call_waits_, false)) called_ = true;
}

void WaitingRoom::Seat::answered() {
  const std::lock_guard lock{room_->mutex_};
  called_ = false;
}

Task<void> WaitingRoom::Seat::sit(SteadyTime until, std::stop_token stop) {
  const auto arrival = std::make_shared<Completion>(room_->store_.driver());
  {
    const std::lock_guard lock{room_->mutex_};
    if (room_->call_waits_) co_return;  // rise() takes it
    idle_ = arrival;
  }
  {
    const std::stop_callback on_stop{std::move(stop), [arrival] { arrival->complete(); }};
    auto waiting = wait_until(*arrival, room_->store_.clock(), until);
    co_await waiting;
  }
  const std::lock_guard lock{room_->mutex_};
  idle_ = nullptr;
}

void WaitingRoom::call_one() {
  std::shared_ptr<Completion> idle;
  {
    const std::lock_guard lock{mutex_};
    for (Seat* const seat : seats_) {
      if (!seat->idle_) continue;
      idle = std::exchange(seat->idle_, nullptr);
      seat->called_ = true;
      break;
    }
    if (!idle) call_waits_ = true;
  }
  if (idle) idle->complete();  // without the mutex: it may carry on right here
}

Task<std::shared_ptr<WaitingRoom>> WaitingRooms::enter(std::string channel) {
  const Room room = room_of(channel);
  std::shared_ptr<Completion> opened;
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    if (room->door_ == WaitingRoom::Door::open) co_return room;
    first = room->door_ == WaitingRoom::Door::closed;
    if (first) room->door_ = WaitingRoom::Door::opening;
    opened = std::make_shared<Completion>(store_.driver());
    room->at_the_door_.push_back(opened);
  }
  if (first) spawn(open(std::move(channel), room));
  Completion& door = *opened;
  co_await door;
  if (room->failure_) std::rethrow_exception(room->failure_);
  co_return room;
}

WaitingRooms::Room WaitingRooms::room_of(const std::string& channel) {
  const std::lock_guard lock{mutex_};
  std::weak_ptr<WaitingRoom>& slot = rooms_[channel];
  if (auto room = slot.lock(); room && room->door_ != WaitingRoom::Door::broken) return room;
  auto room = std::make_shared<WaitingRoom>(store_);
  slot = room;
  std::erase_if(rooms_, [](const auto& entry) { return entry.second.expired(); });
  return room;
}

Task<void> WaitingRooms::open(std::string channel, Room room) {
  const auto self = shared_from_this();
  Listener listener;
  std::exception_ptr failure;
  try {
    auto listening =
        store_.listen(std::move(channel), [weak = std::weak_ptr{room}](const Message&) {
          if (const auto there = weak.lock()) there->call_one();
        });
    listener = co_await listening;
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<std::shared_ptr<Completion>> at_the_door;
  {
    const std::lock_guard lock{mutex_};
    room->door_ = failure ? WaitingRoom::Door::broken : WaitingRoom::Door::open;
    room->failure_ = failure;
    room->listener_ = std::move(listener);
    at_the_door.swap(room->at_the_door_);
  }
  for (const auto& waiter : at_the_door) waiter->complete();
}

}  // namespace sluice::lock
