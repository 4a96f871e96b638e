#include "sluice/latch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "lock/hold/owner.hpp"
#include "lock/latch/latch.lua.hpp"
#include "lock/text.hpp"
#include "lock/wait/message_signal.hpp"
#include "lock/wait/waiting.hpp"
#include "store/combiner.hpp"
#include "store/key_name.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds shortest_memory{1000};
constexpr milliseconds longest_memory = std::chrono::days{7};
constexpr std::int64_t largest_memory = 1'000'000;
constexpr std::int64_t longest_part = 256;
/// An opening is remembered for so long at least: longer than a waiter can sleep between two looks,
/// outages included.
constexpr milliseconds opening_remembered = std::chrono::minutes{5};
/// Looks of one process that travel as one.
constexpr std::size_t most_looks = 1'000'000;

}  // namespace

class Latch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Store& store, std::string name, const LatchOptions& options)
      : store_(store),
        name_(lock::checked_name("a latch", std::move(name))),
        requests_(key_with_prefix("sluice_latch_requests", name_)),
        opened_(key_with_prefix("sluice_latch_opened", name_)),
        parts_(key_with_prefix("sluice_latch_parts", name_)),
        channel_("redisson_countdownlatch__channel__{" + name_ + "}"),
        remember_ms_(fmt::to_string(options.remember.count())),
        opening_ms_(fmt::to_string(std::max(options.remember, opening_remembered).count())),
        most_remembered_(fmt::to_string(options.most_remembered)),
        looks_(store.driver(), most_looks,
               [this](std::vector<Ask> asks) { return look_for(asks.size()); }) {
    lock::check_one_slot(store, "latch", name_, channel_);
    lock::check_range("the memory of a latch in ms", options.remember.count(),
                      shortest_memory.count(), longest_memory.count());
    lock::check_range("most_remembered of a latch", options.most_remembered, 1, largest_memory);
  }

  const std::string& name() const noexcept { return name_; }

  Task<bool> set(std::int64_t count, bool whatever) {
    lock::check_range("the count of a latch", count, whatever ? 0 : 1, largest_count);
    const std::string request = lock::new_request_id();
    const Value reply = co_await ask(scripts::lock_latch_set, request, count, whatever ? "1" : "0");
    co_return reply.as_integer() == 1;
  }

  /// `part`: empty for none.
  Task<std::int64_t> count_down(std::string part, std::int64_t by) {
    lock::check_range("a count-down", by, 1, largest_count);
    const std::string request = lock::new_request_id();
    const Value reply = co_await ask(scripts::lock_latch_count_down, request, by, part);
    co_return reply.as_integer();
  }

  Task<std::int64_t> count() {
    const Look now = co_await looks_.call({});
    co_return now.count;
  }

  /// `State`: LatchState; bool, whether it was open or is not set; or void.
  template <class State>
  Task<State> wait(milliseconds wait, std::stop_token stop) {
    const auto self = shared_from_this();  // the Latch may be gone before a Task that was dropped
    lock::StopOrDrop stopping{stop};
    stop = co_await stopping;
    Clock& clock = store_.clock();
    const SteadyTime until = Clock::add(clock.steady(), wait);
    const lock::Patience patience{clock, until};
    const auto look = [this] { return looks_.call({}); };
    auto first_look = lock::wait_out(patience, stop, look);
    Look before = co_await first_look;
    if (before.count == 0 || wait <= milliseconds{0}) co_return as<State>(before.state());

    lock::MessageSignal opened{{&store_}};
    const auto listen = [&] { return opened.listen(channel_, until); };
    if (stop.stop_requested()) co_return as<State>(LatchState::closed);
    auto listening = lock::wait_out(patience, stop, listen);
    // before the second look, so that no opening is missed
    if (const bool heard = co_await listening; !heard) co_return as<State>(LatchState::closed);
    while (clock.steady() < until && !stop.stop_requested()) {
      auto next_look = lock::wait_out(patience, stop, look);
      const Look now = co_await next_look;
      if (now.count == 0 || now.opened_since(before)) co_return as<State>(LatchState::open);
      before = now;
      co_await opened.wait(std::min(until, clock.steady() + lock::longest_rest), stop);
    }
    co_return as<State>(LatchState::closed);
  }

 private:
  template <class State>
  static State as(LatchState state) {
    if constexpr (std::is_same_v<State, bool>) return state != LatchState::closed;
    if constexpr (std::is_same_v<State, LatchState>) return state;
  }

  struct Ask {};
  struct Look {
    std::int64_t count = 0;
    std::int64_t opening = 0;  ///< its number; 0: none that is remembered

    bool opened_since(const Look& earlier) const noexcept {
      return opening != 0 && opening != earlier.opening;
    }
    LatchState state() const noexcept {
      if (count > 0) return LatchState::closed;
      return opening == 0 ? LatchState::not_set : LatchState::open;
    }
  };

  /// Repeatable: a copy finds the request id of the first. `last`: what the script wants last.
  Task<Value> ask(const Script& script, std::string_view request, std::int64_t number,
                  std::string_view last) {
    const std::string text = fmt::to_string(number);
    const std::array<std::string_view, 4> keys{name_, requests_, opened_, parts_};
    const std::array<std::string_view, 7> args{
        request, text, channel_, remember_ms_, most_remembered_, opening_ms_, last};
    return store_.run(script, Words{keys}, Words{args}, {.repeatable = true});
  }

  /// One look for all that want one now.
  Task<std::vector<Look>> look_for(std::size_t many) {
    const std::array<std::string_view, 3> keys{name_, requests_, opened_};
    const Value reply =
        co_await store_.run(scripts::lock_latch_look, Words{keys}, {}, {.repeatable = true});
    const auto& parts = reply.as_items();
    const Look look{.count = parts.at(0).as_integer(), .opening = parts.at(1).as_integer()};
    co_return std::vector<Look>(many, look);
  }

  Store& store_;
  const std::string name_;
  const std::string requests_;
  const std::string opened_;
  const std::string parts_;
  const std::string channel_;
  const std::string remember_ms_;
  const std::string opening_ms_;
  const std::string most_remembered_;
  Combiner<Ask, Look> looks_;
};

Latch::Latch(Store& store, std::string name, LatchOptions options)
    : impl_(std::make_shared<Impl>(store, std::move(name), options)) {}

const std::string& Latch::name() const noexcept { return impl_->name(); }

Latch::~Latch() = default;
Latch::Latch(Latch&&) noexcept = default;
Latch& Latch::operator=(Latch&&) noexcept = default;

Task<bool> Latch::try_set_count(std::int64_t count) { return impl_->set(count, false); }

Task<void> Latch::reset(std::int64_t count) { co_await impl_->set(count, true); }

Task<std::int64_t> Latch::count_down(std::int64_t by) { return impl_->count_down({}, by); }

Task<std::int64_t> Latch::count_down_once(std::string part, std::int64_t by) {
  lock::check_range("the length of the name of a part in bytes",
                    static_cast<std::int64_t>(part.size()), 1, longest_part);
  return impl_->count_down(std::move(part), by);
}

Task<std::int64_t> Latch::count() { return impl_->count(); }

Task<LatchState> Latch::state(milliseconds wait, std::stop_token stop) {
  return impl_->wait<LatchState>(wait, std::move(stop));
}

Task<void> Latch::wait() { return impl_->wait<void>(lock::for_ever, {}); }

Task<bool> Latch::try_wait(milliseconds wait, std::stop_token stop) {
  return impl_->wait<bool>(wait, std::move(stop));
}

std::string_view to_string(LatchState state) noexcept {
  constexpr std::array<std::string_view, 3> names{"closed", "open", "not_set"};
  return names[static_cast<std::size_t>(state)];
}

}  // namespace sluice
