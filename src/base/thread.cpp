#include "base/thread.hpp"

#include <pthread.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/descriptor.hpp"
#include "sluice/error.hpp"

namespace sluice {

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&blocked, fault);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void fail_system_call(const char* call, int error) {
  const std::system_error failure{error, std::generic_category(), call};
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
      throw Error{Errc::out_of_space,
                  std::string{failure.what()} +
                      ": the process has as many descriptors or threads as it may (ulimit -n, -u), "
                      "or no memory"};
    default: throw failure;
  }
}

}  // namespace sluice
