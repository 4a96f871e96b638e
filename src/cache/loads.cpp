#include "cache/loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"

namespace sluice::cache {

Error closed_guard() { return Error{Errc::closed, "the cache guard has ended"}; }

Loads::Loads(Store& store, std::size_t most, std::size_t most_waiting)
    : store_(store),
      most_(most),
      most_waiting_(most_waiting),
      state_(std::make_shared<State>(store.clock())) {}

bool Loads::is_loading(std::string_view key) const noexcept {
  for (const Link* link = running_.get(); link; link = link->needed_by.get())
    if (link->runs && &link->store == &store_ && std::ranges::count(link->keys, key) > 0)
      return true;
  return false;
}

/// Whether a load of this guard that runs needs it.
bool Loads::is_needed_here(const Link& link) const noexcept {
  for (const Link* by = link.needed_by.get(); by; by = by->needed_by.get())
    if (by->runs && by->loads == state_.get()) return true;
  return false;
}

Task<Loaded> Loads::run(std::vector<std::string> keys, Loader loader, Need need,
                        SteadyTime begin_before) {
  const auto turn = std::make_shared<Turn>();
  turn->loader = std::move(loader);
  turn->begin_before = begin_before;
  while (need && !need->runs) need = need->needed_by;  // nobody waits there any more
  turn->link = std::make_shared<Link>(store_, state_.get(), std::move(keys), std::move(need));
  enter(turn);
  co_await turn->done;
  co_return std::move(turn->loaded);
}

void Loads::enter(const std::shared_ptr<Turn>& turn) {
  const bool nested = turn->nested = is_needed_here(*turn->link);
  State& state = *state_;
  const std::lock_guard lock{state.mutex};
  if (state.closed) throw closed_guard();
  const std::size_t room = most_ + std::min(state.nested + (nested ? 1 : 0), most_);
  const std::size_t free = state.threads - state.busy;  // or on the way to be
  const bool starts = free <= state.waiting.size() && state.threads < room;
  if (!starts && state.waiting.size() >= free + most_waiting_)
    throw Error{Errc::overloaded,
                fmt::format("{} loads run and {} wait for their turn: the source of the values is "
                            "slow, or max_loads ({}) is too small for it",
                            most_, state.waiting.size(), most_)};
  if (starts) {
    try {
      start_thread([shared = state_] { work(shared); }).detach();
      ++state.threads;
    } catch (const std::system_error& failure) {
      if (state.threads == 0)
        throw Error{Errc::out_of_space,
                    fmt::format("no thread could be started for a load: {}", failure.what())};
    }
  }
  if (nested) {
    ++state.nested;
    state.waiting.push_front(turn);
  } else {
    state.waiting.push_back(turn);
  }
  state.called.notify_one();
}

void Loads::work(const std::shared_ptr<State>& state) {
  mine_ = state.get();
  std::unique_lock lock{state->mutex};
  for (;;) {
    if (state->waiting.empty()) {
      if (state->closed || state->is_one_idle) break;
      state->is_one_idle = true;
      state->called.wait(lock, [&] { return state->closed || !state->waiting.empty(); });
      state->is_one_idle = false;
      continue;
    }
    const auto turn = std::move(state->waiting.front());
    state->waiting.pop_front();
    ++state->busy;
    lock.unlock();
    load(*state, *turn);
    lock.lock();
    --state->busy;
    if (turn->nested) --state->nested;
  }
  --state->threads;
  mine_ = nullptr;
  state->ended.notify_all();
}

void Loads::load(State& state, Turn& turn) {
  const SteadyTime begun = state.clock.steady();
  turn.loaded.began = begun < turn.begin_before;
  if (turn.loaded.began) {
    running_ = turn.link;
    try {
      static_cast<detail::CacheCore::Loaded&>(turn.loaded) = turn.loader();
    } catch (...) {
      turn.loaded.error = std::current_exception();
    }
    running_ = nullptr;  // what goes on from here is no part of the load
    turn.link->runs = false;
  }
  turn.loader = nullptr;
  turn.loaded.took = state.clock.steady() - begun;
  turn.done.complete();
}

void Loads::close() {
  for (;;) {
    std::shared_ptr<Turn> turn;
    {
      const std::lock_guard lock{state_->mutex};
      state_->closed = true;
      state_->called.notify_all();
      if (state_->waiting.empty()) break;
      turn = std::move(state_->waiting.front());
      state_->waiting.pop_front();
    }
    turn->loader = nullptr;
    try {
      throw closed_guard();
    } catch (...) {  // or that there is no memory for it
      turn->loaded.error = std::current_exception();
    }
    turn->done.complete();
  }
  const std::size_t own = mine_ == state_.get() ? 1 : 0;
  std::unique_lock lock{state_->mutex};
  state_->ended.wait(lock, [&] { return state_->threads <= own; });
}

}  // namespace sluice::cache
