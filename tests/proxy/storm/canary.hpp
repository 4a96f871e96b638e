/// A client that asks all the time for what it knows, and whose every value names its key.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "proxy/storm/tongue.hpp"
#include "proxy/storm/wire.hpp"

namespace sluice::test {

class Canary {
 public:
  Canary(const Tongue& tongue, std::uint16_t port, std::size_t number);

  Wire& wire() noexcept { return wire_; }
  std::uint64_t replies() const noexcept { return replies_; }
  /// Looks at what has come and asks on. Not empty: what is wrong.
  std::optional<std::string> look(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  struct Asked {
    Question question;
    Clock::time_point since;
  };
  void ask();

  const Tongue& tongue_;
  std::size_t number_;
  Random random_;
  Wire wire_;
  std::deque<Asked> asked_;
  std::uint64_t replies_ = 0;
};

}  // namespace sluice::test
