#include "sluice/latch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lock/hold/owner.hpp"
#include "lock/latch/count_down.lua.hpp"
#include "lock/latch/ear.hpp"
#include "lock/latch/look.lua.hpp"
#include "lock/latch/set.lua.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiting.hpp"
#include "store/combiner.hpp"
#include "store/key_name.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds shortest_memory{1000};
constexpr milliseconds longest_memory = std::chrono::days{7};
constexpr std::int64_t largest_memory = 1'000'000;
constexpr std::size_t longest_part = 256;
/// More than a waiter can sleep between two looks, outages included.
constexpr milliseconds opening_remembered = std::chrono::minutes{5};
/// Looks of one process that travel as one.
constexpr std::size_t most_looks = 1'000'000;

template <class Number>
void check_range(const char* what, Number value, Number least, Number most) {
  if (value < least || value > most)
    throw Error{Errc::bad_argument,
                fmt::format("{} lies between {} and {}, not at {}", what, least, most, value)};
}

}  // namespace

class Latch::Impl {
 public:
  Impl(Store& store, std::string name, const LatchOptions& options)
      : store_(store),
        name_(lock::checked_name("a latch", std::move(name))),
        requests_(key_with_prefix("sluice_latch_requests", name_)),
        opened_(key_with_prefix("sluice_latch_opened", name_)),
        channel_("redisson_countdownlatch__channel__{" + name_ + "}"),
        remember_ms_(fmt::to_string(options.remember.count())),
        most_remembered_(fmt::to_string(options.most_remembered)),
        looks_(store.driver(), most_looks,
               [this](std::vector<Ask> asks) { return look_for(asks.size()); }) {
    check_range("the memory of a latch in ms", options.remember.count(), shortest_memory.count(),
                longest_memory.count());
    check_range("most_remembered of a latch", options.most_remembered, std::int64_t{1},
                largest_memory);
  }

  const std::string& name() const noexcept { return name_; }

  Task<bool> set(std::int64_t count, bool whatever) {
    check_range("the count of a latch", count, std::int64_t{whatever ? 0 : 1}, largest_count);
    const std::string request = lock::new_request_id();
    auto asked = ask(scripts::lock_latch_set, request, count, whatever ? "1" : "0");
    const Value reply = co_await asked;
    co_return reply.as_integer() == 1;
  }

  Task<std::int64_t> count_down(std::string request, std::int64_t by) {
    check_range("a count-down", by, std::int64_t{1}, largest_count);
    auto asked = ask(scripts::lock_latch_count_down, request, by);
    const Value reply = co_await asked;
    co_return reply.as_integer();
  }

  Task<std::int64_t> count() {
    auto looking = looks_.call({});
    const Look now = co_await looking;
    co_return now.count;
  }

  Task<bool> wait(milliseconds wait, std::stop_token stop) {
    Clock& clock = store_.clock();
    const SteadyTime until = Clock::add(clock.steady(), wait);
    auto first = looks_.call({});
    Look before = co_await first;
    if (before.count == 0) co_return true;
    if (wait <= milliseconds{0}) co_return false;

    auto opening = lock::Ear::open(store_, channel_);
    lock::Ear ear = co_await opening;  // before the second look, so that no opening is missed
    while (clock.steady() < until && !stop.stop_requested()) {
      auto looking = looks_.call({});
      const Look now = co_await looking;
      if (now.count == 0 || now.opened_since(before)) co_return true;
      before = now;
      auto hearing = ear.hear(std::min(until, clock.steady() + lock::longest_rest), stop);
      co_await hearing;
    }
    co_return false;
  }

 private:
  struct Ask {};
  struct Look {
    std::int64_t count = 0;
    std::int64_t opening = 0;  ///< its number; 0: none that is remembered

    bool opened_since(const Look& earlier) const noexcept {
      return opening != 0 && opening != earlier.opening;
    }
  };

  /// Repeatable: a copy finds the request id of the first. `mode`: what lock/latch/set wants last.
  Task<Value> ask(const Script& script, std::string_view request, std::int64_t number,
                  std::string_view mode = {}) {
    static const std::string opening_ms = fmt::to_string(opening_remembered.count());
    const std::string text = fmt::to_string(number);
    const std::array<std::string_view, 3> keys{name_, requests_, opened_};
    const std::array<std::string_view, 7> args{request,          text,       channel_, remember_ms_,
                                               most_remembered_, opening_ms, mode};
    return store_.run(script, Words{keys}, Words{args}.first(args.size() - mode.empty()),
                      {.repeatable = true});
  }

  /// One look for all that want one now.
  Task<std::vector<Look>> look_for(std::size_t many) {
    auto asked = store_.run(scripts::lock_latch_look, {name_, opened_}, {}, {.repeatable = true});
    const Value reply = co_await asked;
    const auto& parts = reply.as_items();
    const Look look{.count = parts.at(0).as_integer(), .opening = parts.at(1).as_integer()};
    co_return std::vector<Look>(many, look);
  }

  Store& store_;
  const std::string name_;
  const std::string requests_;
  const std::string opened_;
  const std::string channel_;
  const std::string remember_ms_;
  const std::string most_remembered_;
  Combiner<Ask, Look> looks_;
};

Latch::Latch(Store& store, std::string name, LatchOptions options)
    : impl_(std::make_unique<Impl>(store, std::move(name), options)) {}

Latch::~Latch() = default;
Latch::Latch(Latch&&) noexcept = default;
Latch& Latch::operator=(Latch&&) noexcept = default;

const std::string& Latch::name() const noexcept { return impl_->name(); }

Task<bool> Latch::try_set_count(std::int64_t count) { return impl_->set(count, false); }

Task<void> Latch::reset(std::int64_t count) {
  auto setting = impl_->set(count, true);
  co_await setting;
}

Task<std::int64_t> Latch::count_down(std::int64_t by) {
  return impl_->count_down(lock::new_request_id(), by);
}

Task<std::int64_t> Latch::count_down_once(std::string part, std::int64_t by) {
  check_range("the name of a part of a latch in bytes", part.size(), std::size_t{1}, longest_part);
  return impl_->count_down("part:" + part, by);
}

Task<std::int64_t> Latch::count() { return impl_->count(); }

Task<void> Latch::wait() {
  auto waiting = impl_->wait(lock::for_ever, {});
  co_await waiting;
}

Task<bool> Latch::try_wait(milliseconds wait, std::stop_token stop) {
  return impl_->wait(wait, std::move(stop));
}

}  // namespace sluice
