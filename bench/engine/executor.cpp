#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/conversation.hpp"
#include "engine/ways.hpp"

namespace sluice::bench {
namespace {

using engine::LockedEngine;
using Batch = std::vector<Conversation*>;

/// As Redis 8 and Valkey 8 have it, in short: clients belong to threads, and what these have parsed
/// goes to one thread that executes, and comes back.
class Executor {
 public:
  Executor(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads)
      : engine_(engine), listener_(listener), homes_(threads) {
    homes_[0].poller.add(listener.descriptor());
  }

  [[noreturn]] void serve() {
    std::vector<std::jthread> others;
    others.emplace_back([this] { execute(); });
    for (std::size_t i = 1; i < homes_.size(); ++i)
      others.emplace_back([this, i] { turns(homes_[i]); });
    turns(homes_[0]);
  }

 private:
  struct Home {
    Home() { poller.add(bell.number()); }
    Poller poller;
    Descriptor bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
    std::mutex mutex;
    Batch executed;  // under mutex
  };

  [[noreturn]] void turns(Home& home) {
    Batch parsed;
    for (;;) {
      for (auto* const conversation : home.poller.wait()) {
        if (!conversation)
          answer(home, parsed);
        else if (conversation->is_away)
          conversation->has_come = true;
        else
          take(*conversation, parsed);
      }
      if (!parsed.empty()) ask(parsed);
    }
  }

  static void take(Conversation& conversation, Batch& parsed) {
    conversation.read();
    if (conversation.has_request()) {
      conversation.is_away = true;
      parsed.push_back(&conversation);
    } else if (conversation.has_ended()) {
      Poller::end(&conversation);
    }
  }

  /// The bell has rung, or a client has come.
  void answer(Home& home, Batch& parsed) {
    std::uint64_t rung = 0;
    if (::read(home.bell.number(), &rung, sizeof rung) < 0 && &home == &homes_[0]) deal();
    Batch executed;
    {
      const std::lock_guard lock{home.mutex};
      executed.swap(home.executed);
    }
    for (auto* const conversation : executed) {
      conversation->write();
      conversation->is_away = false;
      if (std::exchange(conversation->has_come, false)) take(*conversation, parsed);
    }
  }

  void deal() {
    auto accepted = listener_.accept();
    if (accepted.outcome != net::ServerSocket::Outcome::accepted) return;
    auto conversation = std::make_unique<Conversation>(std::move(accepted.socket));
    conversation->home = next_++ % homes_.size();
    homes_[conversation->home].poller.add(std::move(conversation));
  }

  void ask(Batch& parsed) {
    const std::lock_guard lock{mutex_};
    parsed_.insert(parsed_.end(), parsed.begin(), parsed.end());
    parsed.clear();
    something_.notify_one();
  }

  [[noreturn]] void execute() {
    Batch batch;
    std::vector<Batch> of_homes(homes_.size());
    for (;;) {
      batch.clear();
      {
        std::unique_lock lock{mutex_};
        something_.wait(lock, [this] { return !parsed_.empty(); });
        batch.swap(parsed_);
      }
      {
        LockedEngine::Section section{engine_};
        for (auto* const conversation : batch) conversation->execute(section);
      }
      for (auto* const conversation : batch) of_homes[conversation->home].push_back(conversation);
      for (std::size_t i = 0; i < homes_.size(); ++i) give_back(homes_[i], of_homes[i]);
    }
  }

  static void give_back(Home& home, Batch& batch) {
    if (batch.empty()) return;
    {
      const std::lock_guard lock{home.mutex};
      home.executed.insert(home.executed.end(), batch.begin(), batch.end());
    }
    batch.clear();
    const std::uint64_t one = 1;
    static_cast<void>(!::write(home.bell.number(), &one, sizeof one));
  }

  LockedEngine& engine_;
  net::ServerSocket& listener_;
  std::deque<Home> homes_;
  std::size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable something_;
  Batch parsed_;  // under mutex_
};

}  // namespace

void serve_by_executor(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads) {
  Executor{engine, listener, threads}.serve();
}

}  // namespace sluice::bench
