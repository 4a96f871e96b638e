/// Asks the name service in a thread of its own, so that no worker waits for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/endpoint.hpp"

namespace sluice::proxy {

/// Addresses that need no question: of a unix socket or a numeric host. Empty: it is a name.
std::vector<net::Address> known_addresses(const net::Endpoint& endpoint);

class Resolver {
 public:
  /// `addresses`: empty when there is no such host now.
  using Answer = std::function<void(std::vector<net::Address> addresses)>;

  /// How a name is asked for; empty: there is no such host now. May take its time.
  using Lookup = std::function<std::vector<net::Address>(const net::Endpoint&)>;

  /// `lookup` empty: the name service of the system.
  explicit Resolver(Lookup lookup = {});
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Any thread. `answer` is called in the resolver's thread, unless the resolver ends first.
  void ask(net::Endpoint endpoint, Answer answer);
  /// No answer comes any more once this has returned.
  void end();

 private:
  struct Question {
    net::Endpoint endpoint;
    Answer answer;
  };
  void run();

  const Lookup lookup_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<Question> questions_;
  bool ending_ = false;
  std::thread thread_;  // started with the first question
};

}  // namespace sluice::proxy
