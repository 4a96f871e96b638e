/// Where the waiters of this process sit until a lock is released: one room a channel, one
/// subscription a room.
///
/// A message calls one waiter, the first that sits idle, not the whole room: one look at the lock
/// is enough, since either it succeeds or somebody holds the lock whose release will be heard. So
/// the rule of the room: a call is never lost. It is answered by an attempt that began after it; a
/// waiter that was called and leaves without one passes the call on; a call that finds nobody idle
/// waits for the next who would sit down. A gap in the messages counts as a call.
#pragma once

#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::lock {

class WaitingRoom {
 public:
  explicit WaitingRoom(Store& store) : store_(store) {}

  /// A waiter's place, for the time of its wait.
  class Seat {
   public:
    explicit Seat(std::shared_ptr<WaitingRoom> room);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    /// Before an attempt: it answers whatever call there is.
    void rise();
    /// After an attempt that came to an answer.
    void answered();
    /// Until called, or `until` (steady), or `stop`.
    Task<void> sit(SteadyTime until, std::stop_token stop);

   private:
    friend class WaitingRoom;
    std::shared_ptr<WaitingRoom> room_;
    std::list<Seat*>::iterator place_;
    bool called_ = false;  // and has not answered; under the room's mutex, like the next
    std::shared_ptr<Completion> idle_;  // while sitting
  };

 private:
  friend class WaitingRooms;

  void call_one();

  Store& store_;
  std::mutex mutex_;
  std::list<Seat*> seats_;  // in the order of arrival
  bool call_waits_ = false;

  // the subscription; under the mutex of WaitingRooms until it is open
  enum class Door { closed, opening, open, broken } door_ = Door::closed;
  std::exception_ptr failure_;
  std::vector<std::shared_ptr<Completion>> at_the_door_;
  Listener listener_;
};

class WaitingRooms : public std::enable_shared_from_this<WaitingRooms> {
 public:
  explicit WaitingRooms(Store& store) : store_(store) {}

  /// The room of a channel, subscribed: no message that is published after this is missed. Throws
  /// what listen throws.
  Task<std::shared_ptr<WaitingRoom>> enter(std::string channel);

 private:
  using Room = std::shared_ptr<WaitingRoom>;
  Room room_of(const std::string& channel);
  Task<void> open(std::string channel, Room room);

  Store& store_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<WaitingRoom>> rooms_;
};

}  // namespace sluice::lock
