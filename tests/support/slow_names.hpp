/// A name service that answers when a test says so. getaddrinfo of the whole program is the test's,
/// where ThreadSanitizer has not its own: hosts that end with ".test" are 127.0.0.1, others are
/// asked for as usual.
#pragma once

#include <string>

#include "support/thread_sanitized.hpp"

namespace sluice::test {

/// Threads: any. Of a program there is one at a time.
class SlowNames {
 public:
  /// False: this program cannot have it; skip the test.
#ifdef SLUICE_THREAD_SANITIZER
  static constexpr bool are_there = false;
#else
  static constexpr bool are_there = true;
#endif

  SlowNames();
  /// What is still held is answered.
  ~SlowNames();
  SlowNames(const SlowNames&) = delete;
  SlowNames& operator=(const SlowNames&) = delete;

  /// From now on this host is not answered.
  void hold(const std::string& host);
  void answer(const std::string& host);
  /// How often it was asked for.
  int asked(const std::string& host) const;
  /// "after-600ms.test" is answered after so long.
  static std::string after_ms(int time) { return "after-" + std::to_string(time) + "ms.test"; }
};

}  // namespace sluice::test
