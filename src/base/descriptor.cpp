#include "base/descriptor.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include "sluice/error.hpp"

namespace sluice {

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
