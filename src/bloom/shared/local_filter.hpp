/// A local copy of a shared filter, and what keeps it right: a refresh now and then, messages of
/// what is new meanwhile, and a refresh when messages may have been lost.
///
/// What a refresh reads goes into new bits, and so do the messages that come while it reads, so
/// that none of them is lost; then the new bits take the place of the old ones. Readers take a
/// shared lock of their own stripe, and the exchange takes all of them.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/process.hpp"
#include "bloom/shared/filter_bits.hpp"
#include "bloom/shared/shared_filter.hpp"
#include "store/combiner.hpp"

namespace sluice::bloom {

class LocalFilter : public std::enable_shared_from_this<LocalFilter> {
 public:
  LocalFilter(std::shared_ptr<SharedFilter> filter, LocalBloomOptions options);

  /// Listens, reads the bits, and goes on so.
  Task<void> start();
  /// No more of that. What is under way ends by itself.
  void end();

  bool contains(const BloomKey& key) const;
  Task<void> refresh();
  std::chrono::milliseconds age() const;
  std::uint64_t bytes() const;

 private:
  struct Ask {};
  struct alignas(64) Stripe {
    std::shared_mutex mutex;
  };
  using Bits = std::shared_ptr<FilterBits>;

  Stripe& own_stripe() const;
  Task<std::vector<bool>> read(std::size_t asked);
  Task<void> read_bits();
  void put(Bits bits);
  void hear(const Message& message);
  void wake_at(SteadyTime when);
  void refresh_in_background();

  const std::shared_ptr<SharedFilter> filter_;
  const LocalBloomOptions options_;
  Clock& clock_;
  mutable std::array<Stripe, 16> stripes_;
  Bits bits_;  // null: there is no filter; read under a stripe, changed under all of them

  const unsigned forks_ = fork_count();
  mutable std::mutex mutex_;  // of the rest
  Bits coming_;               // that a refresh fills
  SteadyTime read_at_{};
  SteadyTime wakes_at_ = SteadyTime::max();
  std::uint64_t wake_ = 0;  // the one that counts
  bool ended_ = false;
  bool told_ = false;  // that the copy gets old
  Listener listener_;
  Combiner<Ask, bool> refreshes_;
};

}  // namespace sluice::bloom
