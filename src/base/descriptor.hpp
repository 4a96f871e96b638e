/// A file descriptor that is closed with its owner.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sluice {

/// Throws what a call of the system has met: Error{out_of_space} for what the process or the
/// machine has no more of (descriptors, threads, memory), else std::system_error.
[[noreturn]] void fail_system_call(const char* call, int error);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  /// Takes over what a system call gave. Throws as fail_system_call when that was -1.
  Descriptor(int number, const char* call) : number_(number) {
    if (number < 0) fail_system_call(call, errno);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    other.close();
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  /// The caller owns it now.
  int release() noexcept { return std::exchange(number_, -1); }
  void close() noexcept {
    if (is_open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};
/// Closed in a program that is executed. Throws as fail_system_call.
inline Pipe make_pipe() {
  int ends[2]{-1, -1};
  static_cast<void>(::pipe2(ends, O_CLOEXEC));
  return {Descriptor{ends[0], "pipe2"}, Descriptor{ends[1], "pipe2"}};
}

}  // namespace sluice
