#include <deque>
#include <thread>

#include "engine/conversation.hpp"
#include "engine/ways.hpp"

namespace sluice::bench {
namespace {

using engine::LockedEngine;

/// Each thread has some of the clients to itself. The first deals them out as they come.
class Owners {
 public:
  Owners(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads)
      : engine_(engine), listener_(listener), pollers_(threads) {
    pollers_[0].add(listener.descriptor());
  }

  void serve() {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < pollers_.size(); ++i)
      others.emplace_back([this, i] { turns(pollers_[i]); });
    turns(pollers_[0]);
  }

 private:
  [[noreturn]] void turns(Poller& poller) {
    std::vector<Conversation*> answered;
    for (;;) {
      answered.clear();
      for (auto* const conversation : poller.wait()) {
        if (!conversation) {
          deal();
          continue;
        }
        conversation->read();
        if (conversation->has_request()) {
          LockedEngine::Section section{engine_};
          conversation->execute(section);
          answered.push_back(conversation);
        } else if (conversation->has_ended()) {
          Poller::end(conversation);
        }
      }
      for (auto* const conversation : answered) conversation->write();
    }
  }

  void deal() {
    auto accepted = listener_.accept();
    if (accepted.outcome != net::ServerSocket::Outcome::accepted) return;
    pollers_[next_++ % pollers_.size()].add(
        std::make_unique<Conversation>(std::move(accepted.socket)));
  }

  LockedEngine& engine_;
  net::ServerSocket& listener_;
  std::deque<Poller> pollers_;
  std::size_t next_ = 0;
};

}  // namespace

void serve_owned(LockedEngine& engine, net::ServerSocket& listener, std::size_t threads) {
  Owners{engine, listener, threads}.serve();
}

}  // namespace sluice::bench
