/// A client that asks all the time for what it knows, and whose every value names its key.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/latency.hpp"
#include "proxy/storm/tongue.hpp"
#include "proxy/storm/wire.hpp"

namespace sluice::test {

struct CanaryOptions {
  /// After this it has waited for ever.
  std::chrono::milliseconds patience{10'000};
  /// Servers and proxies come and go: a value may be missing, a request may fail with an error, a
  /// connection may end. A reply to another request is wrong all the same.
  bool forgives = false;
  /// From one question to the next; zero: two are always under way.
  std::chrono::microseconds pace{0};
};

class Canary {
 public:
  Canary(const Tongue& tongue, std::uint16_t port, std::size_t number, CanaryOptions options = {});

  /// Null: it has none now.
  Wire* wire() noexcept { return wire_ ? &*wire_ : nullptr; }
  std::uint64_t replies() const noexcept { return replies_; }
  std::uint64_t losses() const noexcept { return losses_; }
  const LatencyCounts& latencies() const noexcept { return latencies_; }
  /// Looks at what has come and asks on. Not empty: what is wrong.
  std::optional<std::string> look();

 private:
  using Clock = std::chrono::steady_clock;
  struct Asked {
    Question question;
    Clock::time_point since;
  };
  void ask();
  void ask_on();
  void connect();
  std::size_t size_of_reply() const;
  bool is_forgiven(const Question& question, std::string_view reply) const;
  std::string told(const Question& question, std::string_view what) const;

  const Tongue& tongue_;
  std::uint16_t port_;
  std::size_t number_;
  CanaryOptions options_;
  Random random_;
  std::optional<Wire> wire_;
  std::deque<Asked> asked_;
  Clock::time_point answered_ = Clock::now();
  std::uint64_t replies_ = 0, losses_ = 0;
  LatencyCounts latencies_;
};

}  // namespace sluice::test
