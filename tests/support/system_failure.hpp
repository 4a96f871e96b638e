/// A call of the system that failed, as an exception.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace sluice::test {

[[noreturn]] inline void fail(const std::string& what, int number = errno) {
  throw std::system_error{number, std::generic_category(), what};
}

}  // namespace sluice::test
