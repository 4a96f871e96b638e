/// Those who wait here for locks, in the order of their arrival: of each lock the first one asks
/// the store, the others wait for their turn.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lock/wait/message_signal.hpp"
#include "sluice/store.hpp"

namespace sluice::server {

struct WaitingLimits {
  std::size_t of_a_name = 256;
  std::size_t all = 4096;
};

/// Threads: any. REQUIRES: it outlives its places.
class WaitingLines {
  struct Line {
    std::list<std::shared_ptr<Completion>> waiting;
    std::shared_ptr<lock::MessageSignal> released;  // the first one listens
  };
  using Lines = std::map<std::string, Line, std::less<>>;

 public:
  /// One who waits; he leaves with this object, and the next has the turn.
  class Place {
   public:
    Place(WaitingLines& lines, Lines::iterator line, std::shared_ptr<Completion> turn)
        : lines_(lines), line_(line), turn_(std::move(turn)) {}
    ~Place() { lines_.leave(*this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Complete when he has the turn.
    const std::shared_ptr<Completion>& turn() const noexcept { return turn_; }
    bool has_turn() const;
    /// REQUIRES: he has the turn.
    std::shared_ptr<lock::MessageSignal> released() const { return line_->second.released; }

   private:
    friend class WaitingLines;
    WaitingLines& lines_;
    Lines::iterator line_;
    std::shared_ptr<Completion> turn_;
  };

  WaitingLines(Store& store, WaitingLimits limits) : store_(store), limits_(limits) {}

  /// Null: too many wait.
  std::unique_ptr<Place> enter(const std::string& name);
  std::size_t waiting(const std::string& name) const;

 private:
  void leave(const Place& place);

  Store& store_;
  const WaitingLimits limits_;
  mutable std::mutex mutex_;
  std::size_t all_ = 0;  // guarded by mutex_
  Lines lines_;          // guarded by mutex_
};

}  // namespace sluice::server
