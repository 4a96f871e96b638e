/// A line to a real server on which the first copy of one call is held, cut off from its client,
/// and delivered at a later point of a history.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/open.hpp"
#include "support/fault_proxy.hpp"
#include "support/forwarding_store.hpp"

namespace sluice::test {

/// The `which`-th call of this name, from 0. Its first copy arrives after so many more points of
/// the history; `never`: it is lost.
struct LateCopy {
  static constexpr std::size_t never = static_cast<std::size_t>(-1);
  std::string call;
  std::size_t which = 0;
  std::size_t after = never;
};

/// A Store whose repeatable calls are counted by name; one of them meets the fault.
class LateStore final : public WatchedStore {
 public:
  LateStore(Store& store, FaultProxy& proxy, std::optional<LateCopy> late)
      : WatchedStore(store), proxy_(proxy), late_(std::move(late)) {}

  using ForwardingStore::run;
  Task<Value> run(Words command, CallOptions options) override {
    const std::string name{command.front()};
    note(name, request_of(name), options.repeatable);
    return store_.run(command, options);
  }
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    note(std::string{script.name}, request_of(script), options.repeatable);
    return store_.run(script, keys, args, options);
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    for (const auto& item : batch.items()) {
      const auto name = item.script ? std::string{item.script->name} : item.words.front();
      note(name, item.script ? request_of(*item.script) : request_of(name), options.repeatable);
    }
    return store_.run(std::move(batch), options);
  }

  /// A point of the history: what came late by now has arrived when this returns.
  void point() {
    {
      const std::lock_guard lock{mutex_};
      if (!held_ || proxy_.hits(*held_) == 0 || arrived_) return;
      arrived_ = passed_++ == late_->after;
      if (!arrived_) return;
    }
    if (proxy_.await_stranded()) proxy_.let_go();
  }
  bool was_held() const {
    const std::lock_guard lock{mutex_};
    return held_ && proxy_.hits(*held_) > 0;
  }
  bool has_arrived() const {
    const std::lock_guard lock{mutex_};
    return arrived_;
  }
  /// How many repeatable calls there were, by name.
  std::map<std::string, std::size_t> repeatable() const {
    const std::lock_guard lock{mutex_};
    return repeatable_;
  }
  /// All calls, repeatable or not.
  std::map<std::string, std::size_t> calls() const {
    const std::lock_guard lock{mutex_};
    return calls_;
  }

 private:
  void note(const std::string& name, Match request, bool repeatable) {
    const std::lock_guard lock{mutex_};
    ++calls_[name];
    if (!repeatable) return;
    const auto number = repeatable_[name]++;
    if (late_ && !held_ && late_->call == name && late_->which == number)
      held_ = proxy_.on(std::move(request), {.fault = LineFault::strand});
  }

  FaultProxy& proxy_;
  const std::optional<LateCopy> late_;
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> repeatable_, calls_;
  std::optional<FaultProxy::RuleId> held_;
  std::size_t passed_ = 0;
  bool arrived_ = false;
};

/// A history that is played: what it was answered, point by point.
class LatePlay {
 public:
  LatePlay(std::uint16_t server, std::optional<LateCopy> late)
      : proxy_(server),
        line_(open(proxy_.url(), {.command_timeout = std::chrono::minutes{1}})),
        store_(*line_, proxy_, std::move(late)),
        other_(open("redis://127.0.0.1:" + std::to_string(server))) {}

  LateStore& store() { return store_; }
  /// Another process's, whose line is sound.
  Store& other() { return *other_; }
  /// Notes an answer, at a point of the history.
  void say(std::string_view what, std::string_view answer) {
    answers_.push_back(std::string{what} + ": " + std::string{answer});
    store_.point();
  }
  void say(std::string_view what) { say(what, std::string_view{}); }
  void say(std::string_view what, const char* answer) { say(what, std::string_view{answer}); }
  void say(std::string_view what, bool answer) {
    say(what, std::string_view{answer ? "yes" : "no"});
  }

  const std::vector<std::string>& answers() const { return answers_; }

 private:
  FaultProxy proxy_;
  std::unique_ptr<Store> line_;
  LateStore store_;
  std::unique_ptr<Store> other_;
  std::vector<std::string> answers_;
};

struct LateHistory {
  const char* name;
  void (*play)(LatePlay& play);
  /// Of calls of one kind the first alone is held, where not all are asked for.
  bool takes_long = false;
};

/// The histories of late_histories.cpp and its neighbours.
std::vector<LateHistory> late_histories();
std::vector<LateHistory> late_histories_of_locks();
std::vector<LateHistory> late_histories_of_sales();

}  // namespace sluice::test
