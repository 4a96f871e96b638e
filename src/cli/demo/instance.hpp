/// A process of the demo, with a pipe to its standard input and one from its standard output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::cli {

class Instance {
 public:
  /// Of this very program. Throws std::system_error.
  explicit Instance(const std::vector<std::string>& arguments);
  /// Closes the pipes and waits for its end.
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Closes its standard input.
  void go() { to_.close(); }
  void terminate() const noexcept;
  /// Waits for its end: what it exits with, or 128 + signal.
  int wait();
  /// The next line that it prints. Throws when it ends without one.
  std::string line();

 private:
  pid_t pid_ = -1;
  Descriptor to_;
  Descriptor from_;
  std::string buffer_;
};

}  // namespace sluice::cli
