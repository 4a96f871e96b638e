/// The waiters of this process for one rate, in the order of their arrival: one line for each key.
/// Only the first asks the server; the others stand behind it, and whoever comes while somebody
/// stands here does not ask either.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "sluice/store.hpp"

namespace sluice::lock {

class Line {
 public:
  explicit Line(Store& store) : store_(store) {}

  /// A waiter's place. Its end calls the next.
  class Place {
   public:
    explicit Place(std::shared_ptr<Line> line);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Waits until it is the first. False: `until` or `stop` came before.
    Task<bool> turn(SteadyTime until, std::stop_token stop);
    /// Of the first: sleeps until `until` or `stop`; the others know that nothing comes before.
    Task<void> sleep(SteadyTime until, std::stop_token stop);

   private:
    friend class Line;
    std::shared_ptr<Line> line_;
    std::list<Place*>::iterator at_;
    std::shared_ptr<Completion> called_;  // while it waits for its turn
  };

  /// Before when nothing can be had; empty: nobody stands here, so nobody knows.
  std::optional<SteadyTime> nothing_before() const;

  /// The rate by which the server last counted for this process; 0: none.
  std::atomic<std::int64_t> counted_by{0};

 private:
  bool is_first(const Place& place) const { return places_.front() == &place; }

  Store& store_;
  mutable std::mutex mutex_;
  std::list<Place*> places_;
  SteadyTime nothing_before_{};
};

class Lines {
 public:
  explicit Lines(Store& store) : store_(store) {}
  std::shared_ptr<Line> line_of(const std::string& key);

 private:
  Store& store_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Line>> lines_;
};

}  // namespace sluice::lock
