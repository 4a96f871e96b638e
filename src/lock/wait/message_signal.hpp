/// Wakes one waiter when a message was published on a channel of one or of several Stores.
///
/// With several Stores, so many of them must have a message as make a majority. A message that
/// comes while the waiter does something else is kept until its next wait.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "lock/wait/waiting.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

class MessageSignal {
 public:
  explicit MessageSignal(std::vector<Store*> stores);

  /// Subscribes to the channel of the first Store: no message published after this is missed.
  /// False: not by `until` (steady). Throws what Store::listen throws.
  Task<bool> listen(std::string channel, SteadyTime until);
  /// The same for every Store, in the background. A Store that fails is not heard.
  void listen_to_all(const std::string& channel);

  /// Until the message, a gap in the messages, `until`, or `stop`.
  Task<void> wait(SteadyTime until, std::stop_token stop);

 private:
  struct State {
    std::vector<Store*> stores;
    std::mutex mutex;
    Listener listener;                            // of the first Store
    std::vector<ListenerBesideStrangers> beside;  // of all of them
    std::vector<bool> heard;                      // from each Store, since the last wait
    std::shared_ptr<Completion> waiting;

    bool is_enough() const;
    void hear(std::size_t store);
  };
  static MessageHandler hearer(const std::shared_ptr<State>& state, std::size_t store);
  static Task<void> try_to_listen(std::shared_ptr<State> state, std::size_t store,
                                  std::string channel);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace sluice::lock
