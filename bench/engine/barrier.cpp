#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/conversation.hpp"
#include "engine/ways.hpp"

namespace sluice::bench {
namespace {

using engine::LockedEngine;

constexpr int spins = 1'000'000;  // of a helper, before it looks whether it shall sleep

/// The threads of Redis 6 and 7 (networking.c), step by step.
class Barrier {
 public:
  Barrier(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads)
      : engine_(engine), listener_(listener), hands_(threads) {
    poller_.add(listener.descriptor());
  }

  /// The main thread.
  [[noreturn]] void serve() {
    for (auto& hand : others()) hand.asleep.lock();
    std::vector<std::jthread> helpers;
    for (auto& hand : others()) helpers.emplace_back([this, &hand] { help(hand); });
    for (;;) {
      // 1. What is ready is not read at once: it is put on a list.
      std::vector<Conversation*> clients;
      for (auto* const conversation : poller_.wait())
        conversation ? clients.push_back(conversation) : accept();
      // 2. All threads read the sockets and find the first request, the main thread among them.
      together(Work::read, clients);
      // 3. The main thread executes alone: each client's first request, and what is behind it.
      execute(clients);
      // 4. All threads write. With less than two clients a thread it is not worth it: the main
      // thread does it alone, and the helpers sleep from then on.
      if (clients.size() < 2 * hands_.size())
        sleep();
      else
        wake();
      together(Work::write, clients);
    }
  }

 private:
  enum class Work { read, write };
  struct alignas(64) Hand {
    std::mutex asleep;  // held by the main thread while the helper shall sleep
    std::atomic<std::size_t> pending{0};
    std::vector<Conversation*> clients;
  };

  std::span<Hand> others() { return std::span{hands_}.subspan(1); }

  void help(Hand& hand) {
    for (;;) {
      for (int i = 0; i < spins && hand.pending == 0; ++i) continue;
      if (hand.pending == 0) {
        const std::lock_guard sleeping{hand.asleep};
        continue;
      }
      do_work(hand);
      hand.pending = 0;
    }
  }

  /// Deals the clients out, round robin, does its own part, and spins until the others are done.
  void together(Work work, const std::vector<Conversation*>& clients) {
    work_ = work;
    const auto hands = awake_ ? hands_.size() : 1;
    for (std::size_t i = 0; i < clients.size(); ++i)
      hands_[i % hands].clients.push_back(clients[i]);
    for (auto& hand : others()) hand.pending = hand.clients.size();
    do_work(hands_[0]);
    for (auto& hand : others())
      while (hand.pending != 0) continue;
    for (auto& hand : hands_) hand.clients.clear();
  }

  void do_work(Hand& hand) {
    for (auto* const conversation : hand.clients)
      work_ == Work::read ? conversation->read() : conversation->write();
  }

  void execute(std::vector<Conversation*>& clients) {
    LockedEngine::Section section{engine_};
    std::erase_if(clients, [&](Conversation* conversation) {
      if (conversation->has_request()) return conversation->execute(section), false;
      if (conversation->has_ended()) Poller::end(conversation);
      return true;
    });
  }

  void wake() {
    if (std::exchange(awake_, true)) return;
    for (auto& hand : others()) hand.asleep.unlock();
  }
  void sleep() {
    if (!std::exchange(awake_, false)) return;
    for (auto& hand : others()) hand.asleep.lock();
  }

  void accept() {
    auto accepted = listener_.accept();
    if (accepted.outcome == net::ServerSocket::Outcome::accepted)
      poller_.add(std::make_unique<Conversation>(std::move(accepted.socket)));
  }

  LockedEngine& engine_;
  net::ServerSocket& listener_;
  Poller poller_;
  std::vector<Hand> hands_;
  Work work_ = Work::read;  // written while all counts are zero
  bool awake_ = false;
};

}  // namespace

void serve_by_barrier(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads) {
  Barrier{engine, listener, threads}.serve();
}

}  // namespace sluice::bench
