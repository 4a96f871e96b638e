/// A lock on the embedded engine, virtual time, and a line that can fail.
#pragma once

#include <gtest/gtest.h>

#include "engine/embedded_store.hpp"
#include "lock/background.hpp"
#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"
#include "support/faulty_store.hpp"

namespace sluice {

using namespace std::chrono_literals;
using test::Fault;
using test::Visitor;
using Kind = ReleaseOutcome::Kind;

class VirtualLock : public testing::Test {
 protected:
  /// `fault` for the next call named `call`, then none.
  void fail_next(std::string call, Fault fault) {
    line_.plan = [call = std::move(call), fault, armed = true](std::string_view what) mutable {
      if (what != call || !std::exchange(armed, false)) return Fault::none;
      return fault;
    };
  }
  /// `fault` for every call named `call`.
  void fail_all(std::string call, Fault fault) {
    line_.plan = [call = std::move(call), fault](std::string_view what) {
      return what == call ? fault : Fault::none;
    };
  }
  /// The process behind that line stands still: it hears nothing, and asks nothing.
  static void stop(test::FaultyStore& line) {
    line.hold_messages();
    line.plan = [](std::string_view) { return Fault::request_late; };
  }
  static void go_on(test::FaultyStore& line) {
    line.plan = [](std::string_view) { return Fault::none; };
    line.let_go();
    line.let_messages_go();
  }
  void heal() {
    line_.plan = [](std::string_view) { return Fault::none; };
  }

  bool exists(std::string_view key) { return store_->run({"EXISTS", key}).get().as_integer() == 1; }
  std::string field(std::string_view key, std::string_view name) {
    const Value value = store_->run({"HGET", key, name}).get();
    return value.is_null() ? "none" : value.as_text();
  }
  /// Type and value of a key, to see that it was left as it is.
  std::string contents(std::string_view key) {
    const std::string type = store_->run({"TYPE", key}).get().as_text();
    const auto read = [&]() -> Task<Value> {
      if (type == "hash") return store_->run({"HGETALL", key});
      if (type == "list") return store_->run({"LRANGE", key, "0", "-1"});
      if (type == "zset") return store_->run({"ZRANGE", key, "0", "-1", "WITHSCORES"});
      return store_->run({"GET", key});
    };
    return type + ' ' + to_string(read().get());
  }
  /// The error that the Task throws, if it throws one.
  template <class T>
  static std::optional<Errc> error_of(Task<T> task) {
    try {
      (void)task.get();
    } catch (const Error& failure) {
      return failure.errc();
    }
    return std::nullopt;
  }
  std::chrono::milliseconds ttl(std::string_view key) {
    return std::chrono::milliseconds{store_->run({"PTTL", key}).get().as_integer()};
  }

  VirtualClock clock_;
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  test::FaultyStore line_{*store_};
  test::FaultyStore far_{*store_};  // as another process sees the server
};

}  // namespace sluice
