/// Clients of a proxy that ask as fast as they can, and hold every reply against its request.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "proxy/support/talk.hpp"

namespace sluice::test {

class RandomLoad {
 public:
  struct Options {
    std::size_t clients = 4;
    std::size_t depth = 20;   ///< requests in one go
    std::size_t keys = 300;   ///< of which random ones are asked
    std::size_t padding = 0;  ///< bytes behind the key in a value
    bool gathers = true;      ///< MGET too
    Language language = Language::redis;
  };

  RandomLoad(std::uint16_t port, Options options) : port_(port), options_(options) {
    for (std::size_t number = 0; number < options.clients; ++number)
      threads_.emplace_back([this, number] { ask(number); });
  }
  RandomLoad(const RandomLoad&) = delete;
  RandomLoad& operator=(const RandomLoad&) = delete;
  ~RandomLoad() { stop(); }

  void stop() {
    over_ = true;
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  std::size_t replies() const noexcept { return replies_; }
  std::size_t errors() const noexcept { return errors_; }
  /// Empty: all replies were right. Else the first that was not.
  std::string wrong() const {
    const std::lock_guard lock{mutex_};
    return wrong_;
  }

  /// Waits until `condition` holds. False: not within a minute.
  template <class Condition>
  [[nodiscard]] static bool await(Condition condition) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  /// Waits for that many replies without an error among them. False: not within a minute.
  [[nodiscard]] bool await_health(std::size_t many = 2000) {
    auto errors = errors_.load(), replies = replies_.load();
    return await([&] {
      if (errors_ == errors) return replies_ >= replies + many;
      errors = errors_, replies = replies_;
      return false;
    });
  }
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  Time last_error() const noexcept { return last_error_; }

 private:
  void ask(std::size_t number) try {
    std::mt19937 random{static_cast<unsigned>(number)};
    const auto talk = connect(options_.language, port_);
    while (!over_) {
      std::string bytes;
      std::vector<Asked> asked;
      for (std::size_t i = 0; i < options_.depth; ++i) {
        asked.push_back(draw(random));
        append_request(bytes, options_.language, asked.back(), options_.padding);
      }
      talk->send(bytes);
      for (const auto& each : asked) judge(each, talk->read(each));
    }
  } catch (const std::system_error& error) {
    note(fmt::format("client {}: {}", number, error.what()));
  }

  std::string key(std::mt19937& random) const {
    return fmt::format("key:{}", random() % options_.keys);
  }
  Asked draw(std::mt19937& random) const {
    const auto form = random() % 8;
    if (form == 0 && options_.gathers)
      return {Asked::What::get_many, {key(random), key(random), key(random), key(random)}};
    return {form < 3 ? Asked::What::set : Asked::What::get, {key(random)}};
  }

  void judge(const Asked& asked, Talk::Outcome outcome) {
    ++replies_;
    if (outcome == Talk::Outcome::error) {
      ++errors_;
      last_error_ = Clock::now();
    } else if (outcome == Talk::Outcome::wrong) {
      note("a reply to another request came for " + asked.keys[0]);
    }
  }

  void note(std::string wrong) {
    const std::lock_guard lock{mutex_};
    if (wrong_.empty()) wrong_ = std::move(wrong);
  }

  std::uint16_t port_;
  Options options_;
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> replies_{0}, errors_{0};
  std::atomic<Time> last_error_{Time{}};
  mutable std::mutex mutex_;
  std::string wrong_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::test
