/// Ends the connections of sessions whose server does not answer: the client libraries wait for a
/// stopped server for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

#include "sluice/clock.hpp"

namespace sluice::sale {

/// Threads: any. One thread serves all sessions of the process.
class SessionWatch {
 public:
  static SessionWatch& of_process();

  /// While it lives, the socket is shut down when the time is over: a read of it ends then.
  class Turn {
   public:
    /// A `socket` of -1 is none that could be shut down. `is_cut` lives longer.
    Turn(int socket, std::chrono::nanoseconds within, bool& is_cut);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class SessionWatch;
    const int socket_;
    const SteadyTime until_;
    bool& is_cut_;
    std::list<Turn*>::iterator place_;
  };

 private:
  SessionWatch();
  [[noreturn]] void work();

  std::mutex mutex_;
  std::condition_variable earlier_;
  std::list<Turn*> turns_;                      // guarded by mutex_
  SteadyTime looks_again_ = SteadyTime::max();  // guarded by mutex_
};

}  // namespace sluice::sale
