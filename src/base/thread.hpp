/// Threads of the library. They take no signal from those of the program: one that the program
/// blocks after it has opened a Store, to sigwait() for it, does not find a thread of ours.
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"

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
/// Throws Error{out_of_space} when there is none to be had.
template <class Body, class Thread = std::thread>
Thread start_thread(Body&& body) {
  const SignalsBlocked inherited;
  try {
    return Thread{std::forward<Body>(body)};
  } catch (const std::system_error& failure) {
    fail_system_call("a thread", failure.code().value());
  }
}

/// The same of a thread whose body takes a std::stop_token, and that is joined at its end.
template <class Body>
std::jthread start_stoppable_thread(Body&& body) {
  return start_thread<Body, std::jthread>(std::forward<Body>(body));
}

}  // namespace sluice
