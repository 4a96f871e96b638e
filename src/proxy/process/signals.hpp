/// The signals of the proxy, read by one thread from a descriptor.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace sluice::proxy::process {

enum class SignalAction : std::uint8_t {
  quit,     ///< INT: exit with 1, as nutcracker
  drain,    ///< TERM: accept no more, answer what is asked, exit with 0 (nutcracker dies)
  reopen,   ///< HUP: the log file
  louder,   ///< TTIN
  quieter,  ///< TTOU
  reload,   ///< USR1 (nutcracker: nothing)
  nothing,  ///< USR2
};

struct Signal {
  int number;
  std::string_view name;
  SignalAction action;
  std::string_view told;  ///< the action, as the log tells it
};

/// Blocks the signals for this thread and those that it starts, and ignores PIPE. Make it before
/// any other thread, one at a time.
class Signals {
 public:
  Signals();
  ~Signals();

  /// Readable when a signal came.
  int descriptor() const noexcept { return descriptor_.number(); }
  /// Empty: none is there.
  std::optional<Signal> next();

  /// From now on a deadly signal (SEGV, BUS, FPE, ILL, ABRT) writes itself, the signals not yet
  /// read and the stack to that file (empty: stderr), as nutcracker does of SEGV; then the process
  /// dies.
  void tell_crashes(const std::string& log_file);

 private:
  Descriptor descriptor_;
  sigset_t before_;
};

/// "signal 1 (SIGHUP) received, reopening log file"
std::string to_string(const Signal& signal);

}  // namespace sluice::proxy::process
