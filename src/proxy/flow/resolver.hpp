/// The addresses of servers: asked for in threads of their own, so that no worker waits for the
/// name service, and no name for another one; and tried in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "net/endpoint.hpp"
#include "sluice/clock.hpp"
#include "sluice/error.hpp"
#include "sluice/expected.hpp"

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

/// Threads: any. It does not wait at its end for a name service that does not answer.
class Resolver {
 public:
  /// Addresses, or why there are none now.
  using Found = Expected<std::vector<net::Address>, Error>;
  /// Must be short, and ask nothing.
  using Answer = std::function<void(const Found& found)>;
  /// How a name is asked for; may block. Throws Error, or returns none, when there is no such host.
  using Lookup = std::function<std::vector<net::Address>(const net::Endpoint&)>;

  /// `lookup` empty: the name service of the system.
  explicit Resolver(Lookup lookup = {});
  ~Resolver() { end(); }

  /// `answer` is called in a thread of the resolver, unless the resolver ends first. A name that is
  /// being asked for is not asked for once more.
  void ask(const net::Endpoint& endpoint, Answer answer);
  /// No answer comes any more once this has returned.
  void end();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

/// The addresses of names for one thread that must not wait.
class KnownNames {
 public:
  /// `wake` is called in another thread when an answer has come.
  KnownNames(Resolver& resolver, std::function<void()> wake);

  /// Nothing: it is asked for. An answer counts for a second.
  std::optional<Resolver::Found> find(const net::Endpoint& endpoint);

 private:
  struct Answer {
    std::optional<Resolver::Found> found;
    SteadyTime at{};
  };
  struct Shared {
    std::function<void()> wake;
    std::mutex mutex;
    std::map<net::Endpoint, Answer> answers;
  };

  Resolver& resolver_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::proxy::flow
