/// The signals of the proxy, read by one thread from a descriptor.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy {

enum class Order : std::uint8_t {
  quit,     ///< INT: end now, with exit code 1 as nutcracker
  drain,    ///< TERM: accept no more, answer what is asked, end with 0 (nutcracker dies)
  reopen,   ///< HUP: the log file
  louder,   ///< TTIN
  quieter,  ///< TTOU
  reload,   ///< USR1 (nutcracker: nothing)
  nothing,  ///< USR2
};

struct SignalOrder {
  int number;
  std::string_view name;
  Order order;
  std::string_view action;  ///< as the log tells it
};

/// Blocks the signals for this thread and those that it starts; ignores PIPE. Make it before any
/// other thread. One at a time.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Readable when a signal came.
  int descriptor() const noexcept { return descriptor_; }
  /// Empty: none is there.
  std::optional<SignalOrder> next();

  /// From now on a signal that the process dies of (SEGV, BUS, FPE, ILL, ABRT) is told in that
  /// file, with those that were still to be read, and the stack; empty: on stderr. The process dies
  /// of it all the same. As nutcracker does of SEGV.
  void tell_crashes(const std::string& log_file);

 private:
  int descriptor_;
  sigset_t before_;
};

/// "signal 1 (SIGHUP) received, reopening log file"
std::string to_string(const SignalOrder& order);

}  // namespace sluice::proxy
