/// A child process of a test. It is killed when its owner is gone, and when the thread that started
/// it is gone, however the test ended (PR_SET_PDEATHSIG): start children from a thread that
/// outlives them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

struct ProcessOptions {
  std::filesystem::path directory;                               ///< to run in; empty: ours
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  std::filesystem::path output;  ///< file for stdout and stderr; empty: ours
};

class Process {
 public:
  /// Runs a program. `argv[0]` is searched in PATH. Throws std::system_error when it cannot be
  /// started.
  explicit Process(const std::vector<std::string>& argv, const ProcessOptions& options = {});
  /// Forks; the child runs `body` and exits with what it returns (70 if it throws). Fork before the
  /// test has threads.
  explicit Process(const std::function<int()>& body);
  ~Process();
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const noexcept { return pid_; }
  bool running() { return !wait_for(std::chrono::milliseconds{0}).has_value(); }

  /// The exit status; 128 + signal for one that a signal ended, as a shell says it. May be asked
  /// again.
  int wait();
  /// Empty: still running after `patience`.
  std::optional<int> wait_for(std::chrono::milliseconds patience);

  void signal(int number);
  void terminate();  ///< SIGTERM
  void kill();       ///< SIGKILL, and waits for its end
  void stop();       ///< SIGSTOP
  void cont();       ///< SIGCONT

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace sluice::test
