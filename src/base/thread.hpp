/// Threads of the library. They take no signal from those of the program: one that the program
/// blocks after it has opened a Store, to sigwait() for it, does not find a thread of ours.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace sluice {

/// While it lives, this thread takes no signals but those of its own faults.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// A thread has the signals of the one that starts it: there is no moment in which it takes more.
template <class Body>
std::thread start_thread(Body&& body) {
  const SignalsBlocked inherited;
  return std::thread{std::forward<Body>(body)};
}

/// The same of a thread whose body takes a std::stop_token, and that is joined at its end.
template <class Body>
std::jthread start_stoppable_thread(Body&& body) {
  const SignalsBlocked inherited;
  std::jthread thread{std::forward<Body>(body)};
  return thread;
}

}  // namespace sluice
