#include "lock/chaos/worker.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <exception>
#include <functional>
#include <random>
#include <thread>

#include "lock/chaos/names.hpp"
#include "sluice/id.hpp"
#include "sluice/latch.hpp"
#include "sluice/lock.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/sale.hpp"
#include "sluice/semaphore.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> asked_to_end{false};

/// All that the threads of a process share.
struct Locks {
  Locks(Store& opened, const std::vector<std::unique_ptr<Store>>& nodes, Sale loaded,
        const WorkerOptions& options)
      : journal(options.journal),
        who(options.who),
        store(opened),
        sale(std::move(loaded)),
        quorum(pointers(nodes), "quorum", {.lease = lease}),
        on_a_replica{.replicas = options.replicas, .within = replicated_within} {}

  static std::vector<Store*> pointers(const std::vector<std::unique_ptr<Store>>& stores) {
    std::vector<Store*> all;
    for (const auto& one : stores) all.push_back(one.get());
    return all;
  }

  Journal journal;
  const std::string who;
  Store& store;
  Sale sale;
  QuorumLock quorum;
  const Durability on_a_replica;
  Mutex mutex{store, "mutex", {.lease = lease}};
  Mutex mutex_2{store, "mutex-2", {.lease = lease}};
  MultiLock both{store, {"mutex-2", "mutex"}, {.lease = lease}};
  FairMutex fair{store, "fair", {.lease = lease}};
  SharedMutex shared{store, "shared", {.lease = lease}};
  Mutex durable{store, "durable", {.lease = lease, .durability = on_a_replica}};
  Mutex durable_2{store, "durable-2", {.lease = lease, .durability = on_a_replica}};
  MultiLock durable_both{
      store, {"durable", "durable-2"}, {.lease = lease, .durability = on_a_replica}};
  FairMutex durable_fair{store, "durable-fair", {.lease = lease, .durability = on_a_replica}};
  SharedMutex durable_shared{store, "durable-shared", {.lease = lease, .durability = on_a_replica}};
  Semaphore desks{store, "desks", {.lease = lease}};
  PermitSemaphore permits{store, "permits", {.lease = lease}};
  RateLimiter rate{
      store,
      "rate",
      {.rate = static_cast<std::int64_t>(agreed_rules().names.at("rate").rate), .keep_alive = 60s}};
  Latch latch{store, "latch"};
  Series numbers{store, "numbers", {.digits = 9}};
  Series durable_numbers{store, "durable-numbers", {.digits = 9, .durability = on_a_replica}};
  IdWorker ids{store, "ids"};
  std::atomic<std::uint64_t> sections{0};
};

/// One thread of a worker.
class Visitor {
 public:
  Visitor(Locks& locks, std::uint64_t seed) : locks_(locks), dice_(seed) {}

  void run() {
    while (!asked_to_end) {
      visit_one(up_to(20));
      if (chance(50)) std::this_thread::sleep_for(std::chrono::microseconds{up_to(8000)});
    }
  }

  /// Waits for nobody, so that servers always have something to lose.
  void run_counter() {
    while (!asked_to_end) {
      visit_one(16 + up_to(3));
      std::this_thread::sleep_for(std::chrono::microseconds{up_to(20'000)});
    }
  }

 private:
  std::uint64_t up_to(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>{0, most}(dice_);
  }
  bool chance(std::uint64_t percent) { return up_to(99) < percent; }
  std::chrono::milliseconds wait() {
    return std::chrono::milliseconds{chance(10) ? 0 : up_to(chance(20) ? 300 : 10'000)};
  }

  void visit_one(std::uint64_t which) {
    switch (which) {
      case 0: return visit(locks_.mutex);
      case 1: return visit(locks_.mutex_2);
      case 2: return visit(locks_.both, "mutex-2+mutex");
      case 3:
      case 4: return visit(locks_.fair);
      case 5: return visit(locks_.shared);
      case 6: return read(locks_.shared);
      case 7: return visit(locks_.durable);
      case 8: return visit(locks_.durable_both, "durable+durable-2");
      case 9: return visit(locks_.durable_fair);
      case 10: return visit(locks_.durable_shared);
      case 11: return read(locks_.durable_shared);
      case 12: return take_desks();
      case 13: return visit_quorum();
      case 14: return take_rate();
      case 15: return use_latch();
      case 16: return draw("numbers", [this] { return number_of(locks_.numbers); });
      case 17: return draw("durable-numbers", [this] { return number_of(locks_.durable_numbers); });
      case 18:
        return draw("ids", [this] { return static_cast<std::uint64_t>(locks_.ids.next().get()); });
      case 19: return buy();
      default: return take_permit();
    }
  }

  void visit(ExclusiveLock& lock) {
    const Owner owner;
    attempt(lock.name(), Mode::exclusive, 0, [&](std::uint64_t number) {
      auto held = chance(30) ? std::optional{lock.acquire(owner).get()}
                             : lock.try_acquire(owner, wait()).get();
      if (held) stay(*held, number, [&] { enter_again(lock, owner); });
      return end(held);
    });
  }

  void read(SharedMutex& lock) {
    attempt(lock.name(), Mode::shared, 0, [&](std::uint64_t number) {
      auto held = chance(30) ? std::optional{lock.acquire_shared().get()}
                             : lock.try_acquire_shared(wait()).get();
      if (held) stay(*held, number);
      return end(held);
    });
  }

  void visit(MultiLock& lock, const std::string& names) {
    attempt(names, Mode::exclusive, 0, [&](std::uint64_t number) {
      auto held = lock.try_acquire(wait()).get();
      if (held) stay(*held, number);
      return end(held);
    });
  }

  void take_desks() {
    const auto many = static_cast<std::uint32_t>(1 + up_to(1));
    attempt("desks", Mode::permits, many, [&](std::uint64_t number) {
      auto held = chance(30) ? std::optional{locks_.desks.acquire(many).get()}
                             : locks_.desks.try_acquire(many, wait()).get();
      if (held) stay(*held, number);
      return end(held);
    });
  }

  void take_permit() {
    attempt("permits", Mode::permits, 1, [&](std::uint64_t number) {
      auto held = locks_.permits.try_acquire(wait()).get();
      if (held) stay(*held, number);
      return end(held);
    });
  }

  void visit_quorum() {
    attempt("quorum", Mode::exclusive, 0, [&](std::uint64_t number) {
      auto held = locks_.quorum.try_acquire(wait()).get();
      if (held) stay(*held, number);
      return end(held);
    });
  }

  void take_rate() {
    const auto many = static_cast<std::int64_t>(1 + up_to(2));
    attempt("rate", Mode::rate, static_cast<std::uint64_t>(many), [&](std::uint64_t number) {
      const bool granted = locks_.rate.try_acquire(many, wait()).get().has_value();
      return granted && done(number);
    });
  }

  /// Sets, counts, or waits.
  void use_latch() {
    const auto lot = up_to(9);
    const auto count = agreed_rules().names.at("latch").count;
    if (lot < 3)
      attempt("latch", Mode::set, count, [&](std::uint64_t number) {
        return locks_.latch.try_set_count(static_cast<std::int64_t>(count)).get() && done(number);
      });
    else if (lot < 7)
      attempt("latch", Mode::count_down, 0, [&](std::uint64_t number) {
        locks_.latch.count_down().get();
        return done(number);
      });
    else
      attempt("latch", Mode::wait, 0, [&](std::uint64_t number) {
        return locks_.latch.try_wait(wait()).get() && done(number);
      });
  }

  /// With its day before it.
  static std::uint64_t number_of(Series& series) {
    const auto number = series.next().get().value();
    constexpr std::uint64_t more_than_a_day_has = 1'000'000'000;
    return std::stoull(number.period) * more_than_a_day_has +
           static_cast<std::uint64_t>(number.sequence);
  }

  void draw(const std::string& name, const std::function<std::uint64_t()>& next) {
    attempt(name, Mode::number, 0, [&](std::uint64_t number) { return done(number, next()); });
  }

  void buy() {
    const auto units = static_cast<std::int64_t>(1 + up_to(2));
    attempt("sale", Mode::order, static_cast<std::uint64_t>(units), [&](std::uint64_t number) {
      const auto request = locks_.who + '/' + std::to_string(number);
      const auto ask = [&] { return locks_.sale.buy({buyer_of(request)}, {request}, units).get(); };
      const auto answer = [&] {
        try {
          return ask();
        } catch (const Error&) {  // again, with the same id
          return ask();
        }
      }();
      return answer.has_order() && done(number, static_cast<std::uint64_t>(answer.order->id));
    });
  }

  /// A call that leaves no hold has succeeded.
  bool done(std::uint64_t number, std::uint64_t token = 0) {
    locks_.journal.enter(number, names_, token, stamp());
    return true;
  }

  /// `body` says whether it was in.
  void attempt(const std::string& names, Mode mode, std::uint64_t permits,
               const std::function<bool(std::uint64_t)>& body) {
    const std::uint64_t number = ++locks_.sections;
    names_ = names;
    locks_.journal.ask(number, names, mode, permits);
    try {
      if (body(number))
        locks_.journal.leave(number);
      else
        locks_.journal.refused(number);
    } catch (const Error& error) {
      failure_ = std::current_exception();
      locks_.journal.fail(number, error.code().message());
      std::this_thread::sleep_for(std::chrono::milliseconds{up_to(200)});
    }
  }

  void note_entry(const Held& held, std::uint64_t number, Stamp at) {
    locks_.journal.enter(number, names_, held.token().value, at);
  }
  void note_entry(const MultiHeld& held, std::uint64_t number, Stamp at) {
    for (const auto& [name, token] : held.tokens())
      locks_.journal.enter(number, name, token.value, at);
  }

  Stamp length() {
    const auto lot = up_to(999);
    if (lot < 930) return std::chrono::microseconds{up_to(2000)};
    if (lot < 988) return std::chrono::milliseconds{up_to(30)};
    if (lot < 998) return std::chrono::milliseconds{up_to(200)};
    return lease + std::chrono::milliseconds{up_to(1000)};  // it takes renewals
  }

  /// Is in for a while, and says how long it was certain of it.
  template <class Hold>
  void stay(const Hold& held, std::uint64_t number, const std::function<void()>& meanwhile = {}) {
    const Stamp came = stamp();
    note_entry(held, number, came);
    const Stamp end = came + length();
    for (Stamp at = came; at < end && !asked_to_end;) {
      std::this_thread::sleep_for(std::min<Stamp>(end - at, 10ms));
      if (meanwhile && chance(2)) meanwhile();
      at = stamp();
      if (!held.valid()) return;
      locks_.journal.valid(number, at);
    }
  }

  void enter_again(ExclusiveLock& lock, const Owner& owner) try {
    (void)lock.try_acquire(owner, 100ms).get();
  } catch (const Error&) {  // the hold that it is about is looked at all the same
  }

  /// By its verb, or by its destructor.
  template <class Hold>
  bool end(std::optional<Hold>& held) {
    const bool was_in = held.has_value();
    if (was_in && chance(50)) held->release().get();
    held.reset();
    return was_in;
  }

  Locks& locks_;
  std::mt19937_64 dice_;
  std::string names_;
  /// The last one. Threads may share it, and ThreadSanitizer knows only of an exception_ptr that
  /// its release comes after what others did with it (support/thread_sanitizer.supp).
  std::exception_ptr failure_;
};

std::unique_ptr<Store> open_patiently(const std::string& url) {
  while (!asked_to_end) {
    try {
      return open(url);
    } catch (const Error&) {
      std::this_thread::sleep_for(50ms);
    }
  }
  return nullptr;
}

std::optional<Sale> load_patiently(Store& store) {
  while (!asked_to_end) {
    try {
      if (auto sale = Sale::load(store, "sale").get()) return sale;
    } catch (const Error&) {  // as below
    }
    std::this_thread::sleep_for(50ms);  // it is lost, and is being recovered
  }
  return std::nullopt;
}

}  // namespace

int work(const WorkerOptions& options) {
  ::signal(SIGTERM, [](int) { asked_to_end = true; });
  const auto store = open_patiently(options.url);
  std::vector<std::unique_ptr<Store>> nodes;
  for (const auto& url : options.nodes) nodes.push_back(open_patiently(url));
  auto sale = store ? load_patiently(*store) : std::nullopt;
  if (asked_to_end || !sale) return 0;
  Locks locks{*store, nodes, std::move(*sale), options};
  std::vector<std::jthread> threads;
  for (int i = 0; i < options.threads; ++i)
    threads.emplace_back([&, seed = options.seed * 100 + static_cast<std::uint64_t>(i)] {
      Visitor{locks, seed}.run();
    });
  threads.emplace_back([&] { Visitor{locks, options.seed * 100 + 99}.run_counter(); });
  return 0;
}

}  // namespace sluice::chaos
