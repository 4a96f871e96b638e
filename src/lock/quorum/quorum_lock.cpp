#include "sluice/quorum_lock.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "base/random.hpp"
#include "lock/hold/owner.hpp"
#include "lock/quorum/attempt.hpp"
#include "lock/wait/message_signal.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace lock {
namespace {

Error bad(const std::string& what) { return Error{Errc::bad_argument, "a quorum lock " + what}; }

Vote::Nodes checked(Vote::Nodes nodes) {
  if (nodes.empty() || nodes.size() > QuorumLock::most_nodes)
    throw bad("has from 1 to " + std::to_string(QuorumLock::most_nodes) + " nodes, not " +
              std::to_string(nodes.size()));
  if (std::ranges::find(nodes, nullptr) != nodes.end()) throw bad("was given a null for a node");
  if (std::set(nodes.begin(), nodes.end()).size() != nodes.size())
    throw bad("was given one node twice: its vote would count twice");
  return nodes;
}

Names names_on(const Vote::Nodes& nodes, std::string name) {
  Names names{std::move(name)};
  for (const Store* node : nodes) check_one_slot(*node, "quorum lock", names.key);
  return names;
}

QuorumTerms terms_of(const QuorumLockOptions& options) {
  const Terms terms = Terms::of(options.lease, options.margin, options.watchdog);
  const milliseconds least = std::min(milliseconds{10}, options.lease / 2);
  const milliseconds timeout = options.node_timeout.value_or(
      std::clamp<milliseconds>(options.lease / 50, least, milliseconds{500}));
  if (timeout < milliseconds{1} || timeout >= options.lease)
    throw bad("waits for a node between 1 ms and its lease, not " +
              std::to_string(timeout.count()) + " ms");
  if (options.first_pause < milliseconds{1} || options.longest_pause < options.first_pause ||
      options.longest_pause > longest_rest)
    throw bad("pauses between 1 ms and 30 s, the first not longer than the longest");
  return {.terms = terms, .node_timeout = timeout, .fenced = options.fenced};
}

/// A random time.
nanoseconds between(nanoseconds least, nanoseconds most) {
  const auto range = static_cast<std::uint64_t>((most - least).count());
  return least + nanoseconds{random_below(range + 1)};
}

}  // namespace

class QuorumCore : public std::enable_shared_from_this<QuorumCore> {
 public:
  QuorumCore(Vote::Nodes nodes, std::string name, QuorumLockOptions options)
      : nodes_(checked(std::move(nodes))),
        names_(names_on(nodes_, std::move(name))),
        terms_(terms_of(options)),
        first_pause_(options.first_pause),
        longest_pause_(options.longest_pause),
        label_(label_or_program(std::move(options.label))),
        watchdog_(watchdog_of(nodes_)) {}

  const std::string& name() const noexcept { return names_.key; }
  Task<std::optional<Held>> enter(milliseconds wait, std::stop_token stop);

 private:
  Task<std::shared_ptr<Hold>> try_once();
  Task<std::shared_ptr<Hold>> try_until(SteadyTime until, std::stop_token stop);

  const Vote::Nodes nodes_;
  const Names names_;
  const QuorumTerms terms_;
  const milliseconds first_pause_;
  const milliseconds longest_pause_;
  const std::string label_;
  const std::shared_ptr<Watchdog> watchdog_;
};

/// Each attempt has a new owner: what an earlier attempt left at a node is released under its own.
Task<std::shared_ptr<Hold>> QuorumCore::try_once() {
  const auto attempt =
      std::make_shared<Attempt>(watchdog_, names_, terms_, new_identity(nullptr, label_));
  co_return co_await attempt->acquire();
}

/// At least once.
Task<std::shared_ptr<Hold>> QuorumCore::try_until(SteadyTime until, std::stop_token stop) {
  Clock& clock = watchdog_->clock();
  std::optional<MessageSignal> released;
  nanoseconds pause = first_pause_;
  for (;;) {
    auto hold = co_await try_once();
    if (hold || clock.steady() >= until || stop.stop_requested()) co_return hold;
    if (!released) released.emplace(nodes_).listen_to_all(names_.channel);
    const SteadyTime again = Clock::add(clock.steady(), between(pause / 2, pause));
    co_await released->wait(std::min(until, again), stop);
    if (clock.steady() >= until || stop.stop_requested()) co_return nullptr;
    // All waiters hear a release at once. If all asked at once, each would get a few nodes only.
    const SteadyTime mine = Clock::add(clock.steady(), between({}, pause / 5));
    co_await sleep_until(clock, std::min(until, mine));
    pause = std::min<nanoseconds>(pause * 2, longest_pause_);
  }
}

Task<std::optional<Held>> QuorumCore::enter(milliseconds wait, std::stop_token stop) {
  const auto self = shared_from_this();  // the lock may end meanwhile
  Clock& clock = watchdog_->clock();
  const SteadyTime began = clock.steady();
  StopOrDrop stopping{stop};
  stop = co_await stopping;
  auto hold = co_await try_until(Clock::add(clock.steady(), wait), std::move(stop));
  if (!hold) {
    count(metrics().lock_refused);
    co_return std::nullopt;
  }
  metrics().lock_wait.observe(clock.steady() - began);
  co_return Internals::held(std::move(hold));
}

}  // namespace lock

QuorumLock::QuorumLock(std::vector<Store*> nodes, std::string name, QuorumLockOptions options)
    : core_(std::make_shared<lock::QuorumCore>(std::move(nodes), std::move(name),
                                               std::move(options))) {}

QuorumLock::~QuorumLock() = default;

const std::string& QuorumLock::name() const noexcept { return core_->name(); }

Task<Held> QuorumLock::acquire() {
  const auto core = core_;
  lock::StopOrDrop stopping{{}};
  std::stop_token stop = co_await stopping;
  auto held = co_await core->enter(lock::for_ever, std::move(stop));
  co_return std::move(held).value();
}

Task<std::optional<Held>> QuorumLock::try_acquire(milliseconds wait, std::stop_token stop) {
  return core_->enter(wait, std::move(stop));
}

}  // namespace sluice
