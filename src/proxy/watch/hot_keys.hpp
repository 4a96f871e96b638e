/// The keys that are asked for most, of late: Space-Saving (Metwally and others, 2005) over a
/// sample of the requests, whose counts halve every half-life.
///
/// A key that makes up more than 1/slots of the sample is among the entries for certain. A count is
/// too high by `surplus` at most: keys are ranked by what is certain, and both bounds are told.
/// Rates are means of about the last 15 s, so one that has just begun reads too low. One request in
/// `sample` is looked at, on average, after a random number of others: a periodic stream is seen
/// fairly.
/// Threads: note() is for one; the rest for any. A note() that meets a reader is dropped, it never
///   waits.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::proxy::watch {

struct HotKey {
  std::string key;       ///< an excerpt
  double rate = 0;       ///< requests a second, at least
  double share = 0;      ///< of all requests, at least
  double most_rate = 0;  ///< requests a second, at most
};

struct HotKeyOptions {
  std::uint32_t sample = 64;
  std::chrono::nanoseconds half_life = std::chrono::seconds{10};
};

class HotKeys {
 public:
  static constexpr std::size_t slots = 128;

  explicit HotKeys(HotKeyOptions options, SteadyTime now);

  /// Costs a decrement, but for one in `sample`.
  void note(std::string_view key, SteadyTime now) {
    if (--until_sample_ == 0) take(key, now);
  }

  /// What one worker has; to be merged.
  struct Counted {
    struct Entry {
      std::uint64_t hash;
      std::string key;
      double certain, surplus;
    };
    std::vector<Entry> entries;
    double all = 0;
    double seconds = 0;  ///< that `all` stands for
  };
  Counted counted(SteadyTime now) const;
  /// The `most` hottest keys of all workers.
  static std::vector<HotKey> top(const std::vector<Counted>& workers, std::size_t most);

 private:
  struct Slot {
    double surplus = 0;
    std::uint8_t size = 0;
    bool cut = false;
    std::array<char, 64> text;
  };

  void take(std::string_view key, SteadyTime now);
  void place(std::uint64_t hash, std::string_view key);
  void fade(SteadyTime now);
  std::uint32_t next_gap() noexcept;

  HotKeyOptions options_;
  std::uint32_t until_sample_ = 1;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
  mutable std::mutex mutex_;
  SteadyTime faded_;        // when counts were last halved
  SteadyTime since_;        // when counting began, as far as the present half-life is concerned
  double old_seconds_ = 0;  // of the half-lives before, faded as their counts are
  double all_ = 0;
  std::array<std::uint64_t, slots> hashes_{};  // apart, and
  std::array<double, slots> counts_{};         // these too: they are what is searched
  std::array<Slot, slots> slots_{};
};

}  // namespace sluice::proxy::watch
