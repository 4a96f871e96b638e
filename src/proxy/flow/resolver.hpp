/// The addresses of servers: asked for in a thread of its own, so that no worker waits for the name
/// service, and tried in turn.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/endpoint.hpp"

namespace sluice::proxy::flow {

/// Addresses that need no question: of a unix socket or a numeric host. Empty: it is a name.
std::vector<net::Address> known_addresses(const net::Endpoint& endpoint);

/// The addresses of a server, and which of them is the next to connect to.
class Addresses {
 public:
  Addresses() = default;
  explicit Addresses(std::vector<net::Address> all) : all_(std::move(all)) {}

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  const std::vector<net::Address>& all() const noexcept { return all_; }
  /// REQUIRES: !empty().
  const net::Address& current() const noexcept { return all_[place_]; }
  /// `address` did not answer: if it is the current one, the next is.
  void skip(const net::Address& address) noexcept;
  bool contains(const net::Address& address) const noexcept;
  /// A newer answer of the name service. The current address stays so, if it is still among them.
  void take(std::vector<net::Address> all);

 private:
  std::vector<net::Address> all_;
  std::size_t place_ = 0;
};

class Resolver {
 public:
  /// `addresses`: empty when there is no such host now.
  using Answer = std::function<void(std::vector<net::Address> addresses)>;

  /// How a name is asked for; may block. Empty result: there is no such host now.
  using Lookup = std::function<std::vector<net::Address>(const net::Endpoint&)>;

  /// `lookup` empty: the name service of the system.
  explicit Resolver(Lookup lookup = {});
  ~Resolver();

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

}  // namespace sluice::proxy::flow
