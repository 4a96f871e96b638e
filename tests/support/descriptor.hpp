/// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice::test {

class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over what a system call gave. Throws std::system_error, naming it, when that was -1.
  Descriptor(int number, const char* call) : number_(number) {
    if (number < 0) throw std::system_error{errno, std::generic_category(), call};
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  void close() noexcept {
    if (is_open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace sluice::test
