/// A machine that lacks something for a moment: requests of this program to the system fail where a
/// test says so, and later ones are granted again.
///
/// The functions that ask for it take the place of libc's in the program that this is linked into.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::test {

enum class Lack : std::uint8_t {
  descriptors,  ///< EMFILE, whichever thread asks
  threads,      ///< EAGAIN
  memory,       ///< std::bad_alloc, only for the thread that lacks it
};

/// One at a time.
class Scarcity {
 public:
  /// From now on the requests number `from` to `from + count - 1` fail; the first is 0.
  Scarcity(Lack what, std::size_t from, std::size_t count);
  ~Scarcity();
  Scarcity(const Scarcity&) = delete;
  Scarcity& operator=(const Scarcity&) = delete;

  std::size_t requests() const noexcept;  ///< so far, refused ones among them
  std::size_t refused() const noexcept;
  std::size_t bytes()
      const noexcept;  ///< of memory that were requested, with those that were freed
};

}  // namespace sluice::test
