/// A process of the demo, with a pipe to its standard input and one from its standard output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::cli {

class Instance {
 public:
  /// Of the first program of `places` that is there; a name without a folder is looked for on PATH.
  /// `words`: its argv. Throws std::system_error, of ENOENT when there is none.
  Instance(const std::vector<std::string>& places, const std::vector<std::string>& words);
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
