/// Threads that count through proxies, and write down what they saw.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "proxy/move/counter_history.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {

class CounterLoad {
 public:
  struct Options {
    std::vector<std::uint16_t> ports;
    std::size_t threads = 4;
    std::size_t keys = 200;  ///< "count0" ...
    std::size_t pipelined = 4;
  };

  explicit CounterLoad(Options options) : options_(std::move(options)) {
    for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~CounterLoad() { static_cast<void>(stop()); }

  std::uint64_t done() const noexcept { return done_; }
  std::uint64_t unknown() const noexcept { return unknown_; }
  std::uint64_t refused() const noexcept { return refused_; }
  std::chrono::nanoseconds longest() const noexcept { return std::chrono::nanoseconds{longest_}; }
  std::map<std::string, int> errors() const { return errors_; }

  /// All that was seen.
  const std::vector<CounterEvent>& stop() {
    ends_ = true;
    threads_.clear();
    return history_;
  }
  /// What the counters say now.
  std::map<std::string, std::int64_t> last(std::uint16_t port) const {
    std::map<std::string, std::int64_t> last;
    PlainClient client{port};
    for (std::size_t i = 0; i < options_.keys; ++i) {
      const auto key = fmt::format("count{}", i);
      const auto value = client.command({"GET", key});
      last[key] = value.is_null() ? 0 : std::stoll(value.as_text());
    }
    return last;
  }

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  /// The proxy, or the server's refusal to let it in, says that nothing was done.
  static bool is_without_effect(std::string_view error) {
    return error.starts_with("ERR nothing was done") || error.starts_with("WRONGPASS") ||
           error.starts_with("NOAUTH") || error.starts_with("NOPERM") ||
           error.starts_with("ERR Connection refused");
  }

  void run(std::size_t number) {
    std::mt19937 random{static_cast<std::mt19937::result_type>(number + 1)};
    std::optional<PlainClient> client;
    std::vector<CounterEvent> events;
    while (!ends_) {
      std::vector<CounterEvent> asked;
      std::size_t answered = 0;
      try {
        if (!client) {
          client.emplace(options_.ports[number % options_.ports.size()]);
          client->patience = std::chrono::seconds{30};
        }
        std::string bytes;
        for (std::size_t i = 0; i < options_.pipelined; ++i) {
          const auto key = fmt::format("count{}", random() % options_.keys);
          const bool adds = random() % 3 != 0;
          bytes += fmt::format("*2\r\n${}\r\n{}\r\n${}\r\n{}\r\n", adds ? 4 : 3,
                               adds ? "INCR" : "GET", key.size(), key);
          asked.push_back({key, adds, {}, now(), 0});
        }
        client->send(bytes);
        for (; answered < asked.size(); ++answered) {
          const auto reply = client->read();
          auto& event = asked[answered];
          event.ended = now();
          longest_ = std::max<std::int64_t>(longest_, event.ended - event.begun);
          if (!reply.is_error()) {
            event.value = reply.is_null()                        ? 0
                          : reply.type() == Value::Type::integer ? reply.as_integer()
                                                                 : std::stoll(reply.as_text());
            ++done_;
          } else {
            note_error(reply.as_text());
            if (is_without_effect(reply.as_text())) event.adds = false;
            ++(event.adds ? unknown_ : refused_);
          }
        }
      } catch (const std::system_error&) {
        client.reset();
        for (; answered < asked.size(); ++answered) {
          asked[answered].ended = now();
          ++unknown_;
        }
        std::this_thread::yield();
      }
      events.insert(events.end(), asked.begin(), asked.end());
    }
    const std::lock_guard lock{mutex_};
    history_.insert(history_.end(), events.begin(), events.end());
  }

  void note_error(const std::string& text) {
    const std::lock_guard lock{mutex_};
    ++errors_[text];
  }

  Options options_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> done_{0}, unknown_{0}, refused_{0};
  std::atomic<std::int64_t> longest_{0};
  std::mutex mutex_;
  std::map<std::string, int> errors_;
  std::vector<CounterEvent> history_;
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::test
