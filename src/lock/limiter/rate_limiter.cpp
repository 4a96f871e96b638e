#include "sluice/rate_limiter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <type_traits>

#include "base/process.hpp"
#include "lock/limiter/queue.hpp"
#include "lock/limiter/wire.hpp"
#include "lock/per_store.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"
#include "store/reply_error.hpp"

namespace sluice {

using lock::RateAnswer;
using std::chrono::milliseconds;

namespace {

constexpr std::int64_t largest_rate = std::numeric_limits<std::int32_t>::max();
constexpr milliseconds longest_interval = std::chrono::days{366};
constexpr std::int64_t longest_client = 256;

std::string of(std::string_view what, const std::string& name) {
  return fmt::format("{} of rate limiter {}", what, lock::quoted(name));
}

void check_rate(const std::string& name, std::int64_t rate, milliseconds interval) {
  lock::check_range(of("the rate", name), rate, 1, largest_rate);
  lock::check_range(of("the interval in ms", name), interval.count(), 1, longest_interval.count());
}

lock::Rate checked(const std::string& name, const RateLimiterOptions& options) {
  check_rate(name, options.rate, options.interval);
  lock::check_range(of("the length of the client in bytes", name),
                    static_cast<std::int64_t>(options.client.size()), 0, longest_client);
  if (options.keep_alive != milliseconds{0})
    lock::check_range(of("keep_alive in ms", name), options.keep_alive.count(),
                      options.interval.count(), 2 * longest_interval.count());
  return {.permits = options.rate,
          .interval = options.interval,
          .kind = options.kind == RateKind::per_client ? '1' : '0',
          .keep_alive = options.keep_alive};
}

std::string client_of(const RateLimiterOptions& options) {
  if (options.kind == RateKind::overall) return {};
  return options.client.empty() ? lock::process_client() : options.client;
}

}  // namespace

class RateLimiter::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Store& store, std::string name, const RateLimiterOptions& options)
      : store_(store),
        keys_(lock::checked_name("a rate limiter", std::move(name)), client_of(options)),
        follow_(options.follow),
        rate_(checked(keys_.definition, options)),
        queues_(lock::shared_of<lock::RateQueues>(store)),
        queue_(queues_->queue_of(keys_.log)) {
    lock::check_one_slot(store, "rate limiter", keys_.definition);
  }

  const std::string& name() const noexcept { return keys_.definition; }

  /// `Granted`: RateGrant, for a wait without an end, or Outcome.
  template <class Granted>
  Task<Granted> acquire(std::int64_t permits, milliseconds wait, std::stop_token stop) {
    lock::check_range(of("the permits of one acquire", name()), permits, 1, largest_rate);
    if (forks_ != fork_count()) throw closed_by_fork();
    const auto self = shared_from_this();  // the limiter may be gone before a Task that was dropped
    lock::StopOrDrop stopping{stop};
    stop = co_await stopping;
    const std::string id = lock::new_permit_id();
    auto entering = enter(permits, id, wait, std::move(stop));
    Outcome outcome = co_await entering;
    if (outcome && stopping.is_dropped()) {
      auto giving_back = lock::give_back_permits(store_, keys_, permits, id);
      co_await giving_back;
    }
    if constexpr (std::is_same_v<Granted, RateGrant>)
      co_return outcome.value();  // throws in a Task that was dropped
    else
      co_return std::move(outcome);
  }

  Task<std::int64_t> available() {
    const RateAnswer answer = co_await ask(0, {}, follow_);
    co_return answer.left;
  }

  Task<bool> try_set_rate() {
    const lock::Rate mine = rate();
    const lock::RateRequest look{.id = {}, .counted_by = queue_->counted_by.load()};
    const RateAnswer answer = co_await lock::ask_permits(store_, keys_, mine, look);
    co_return answer.kind != RateAnswer::Kind::mismatch;
  }

  Task<void> set_rate(std::int64_t permits, milliseconds interval) {
    check_rate(name(), permits, interval);
    lock::Rate changed = rate();
    changed.permits = permits;
    changed.interval = interval;
    if (changed.keep_alive != milliseconds{0})
      changed.keep_alive = std::max(changed.keep_alive, interval);
    const auto in_force = co_await lock::ask_change(store_, keys_, changed);
    if (in_force) throw mismatch(*in_force);
    const std::lock_guard lock{mutex_};
    rate_ = changed;
  }

 private:
  Task<Outcome> enter(std::int64_t permits, std::string_view id, milliseconds wait,
                      std::stop_token stop) {
    const SteadyTime until = Clock::add(store_.clock().steady(), wait);
    std::optional<SteadyTime> next = queue_->nothing_before();
    const bool others_wait = next.has_value();
    if (!others_wait) {
      auto asked = ask_patiently(permits, id, until, stop);
      const RateAnswer answer = co_await asked;
      if (answer.kind == RateAnswer::Kind::granted) co_return granted(permits, answer);
      next = store_.clock().steady() + answer.wait;
    }
    if (wait <= milliseconds{0} || *next > until || stop.stop_requested()) co_return refused(*next);
    if (others_wait) next.reset();
    co_return co_await wait_in_queue(permits, id, next, until, std::move(stop));
  }

  lock::Rate rate() const {
    const std::lock_guard lock{mutex_};
    return rate_;
  }

  /// Granted, or how long to wait.
  Task<RateAnswer> ask(std::int64_t permits, std::string_view id, bool follow) {
    const lock::Rate mine = rate();
    if (!follow && permits > mine.permits) throw above(permits, fmt::to_string(mine.permits));
    const lock::RateRequest request{
        .permits = permits, .id = id, .follow = follow, .counted_by = queue_->counted_by.load()};
    RateAnswer answer = co_await lock::ask_permits(store_, keys_, mine, request);
    if (answer.kind == RateAnswer::Kind::mismatch) throw mismatch(answer.in_force);
    if (answer.kind == RateAnswer::Kind::above) throw above(permits, answer.in_force);
    queue_->counted_by.store(answer.rate);
    if (answer.strangers) queue_->see_strangers(store_.clock().steady() + 4 * mine.interval);
    co_return answer;
  }

  /// The same; an outage is waited out until `until`. The id makes the questions copies of one.
  Task<RateAnswer> ask_patiently(std::int64_t permits, std::string_view id, SteadyTime until,
                                 std::stop_token stop) {
    return lock::wait_out(lock::Patience{store_.clock(), until}, std::move(stop),
                          [this, permits, id] { return ask(permits, id, follow_); });
  }

  /// `next`: when the permits are there by what the server said; empty: it was not asked.
  Task<Outcome> wait_in_queue(std::int64_t permits, std::string_view id,
                              std::optional<SteadyTime> next, SteadyTime until,
                              std::stop_token stop) {
    Clock& clock = store_.clock();
    lock::RateQueue::Waiter waiter{queue_};
    if (const bool first = co_await waiter.turn(until, stop); !first)
      co_return refused(queue_->nothing_before().value_or(clock.steady()));
    for (;;) {
      if (next) {
        const auto longer = queue_->courtesy(rate().interval, clock.steady());
        co_await waiter.sleep(std::min(*next + longer, until), stop);
        if (stop.stop_requested()) co_return refused(*next);
      }
      auto asked = ask_patiently(permits, id, until, stop);
      const RateAnswer answer = co_await asked;
      if (answer.kind == RateAnswer::Kind::granted) co_return granted(permits, answer);
      next = clock.steady() + answer.wait;
      if (*next > until || stop.stop_requested()) co_return refused(*next);
    }
  }

  static Outcome granted(std::int64_t permits, const RateAnswer& answer) {
    count(metrics().rate_granted, static_cast<std::uint64_t>(permits));
    return RateGrant{.left = answer.left};
  }

  Outcome refused(SteadyTime next) {
    count(metrics().rate_refused);
    const auto left = std::chrono::ceil<std::chrono::microseconds>(next - store_.clock().steady());
    return Unexpected{RateExceeded{.retry_after = std::max(left, left.zero())}};
  }

  Error above(std::int64_t permits, const std::string& rate) const {
    return Error{Errc::bad_argument,
                 fmt::format("rate limiter {}: {} permits are never there at once, the rate is {}",
                             lock::quoted(name()), permits, rate)};
  }

  Error mismatch(const std::string& in_force) const {
    const lock::Rate mine = rate();
    return Error{
        Errc::config_mismatch,
        fmt::format("rate limiter {} is defined in {} as {}, and here as {} in {} ms, kind "
                    "{} (0 overall, 1 per client): use the same numbers, `follow` or "
                    "`set_rate`",
                    lock::quoted(name()), store_.describe(), in_force, mine.permits,
                    mine.interval.count(), mine.kind)};
  }

  Store& store_;
  const lock::RateKeys keys_;
  const bool follow_;
  const unsigned forks_ = fork_count();
  mutable std::mutex mutex_;
  lock::Rate rate_;
  const std::shared_ptr<lock::RateQueues> queues_;  // keeps the registry that has queue_
  const std::shared_ptr<lock::RateQueue> queue_;
};

RateLimiter::RateLimiter(Store& store, std::string name, RateLimiterOptions options)
    : impl_(std::make_shared<Impl>(store, std::move(name), options)) {}

RateLimiter::~RateLimiter() = default;
RateLimiter::RateLimiter(RateLimiter&&) noexcept = default;
RateLimiter& RateLimiter::operator=(RateLimiter&&) noexcept = default;

const std::string& RateLimiter::name() const noexcept { return impl_->name(); }

Task<RateLimiter::Outcome> RateLimiter::try_acquire(std::int64_t permits, milliseconds wait,
                                                    std::stop_token stop) {
  return impl_->acquire<Outcome>(permits, wait, std::move(stop));
}

Task<RateGrant> RateLimiter::acquire(std::int64_t permits) {
  return impl_->acquire<RateGrant>(permits, lock::for_ever, {});
}

Task<std::int64_t> RateLimiter::available() { return impl_->available(); }

Task<bool> RateLimiter::try_set_rate() { return impl_->try_set_rate(); }

Task<void> RateLimiter::set_rate(std::int64_t rate, milliseconds interval) {
  return impl_->set_rate(rate, interval);
}

}  // namespace sluice
