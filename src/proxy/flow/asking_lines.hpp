/// The connections of a thread that asks Sentinels or nodes where servers are, beside those of the
/// workers. The thread calls wait() in a loop, and asks between two calls.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/resolver.hpp"
#include "sluice/clock.hpp"
#include "sluice/value.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy::flow {

struct PoolTls;

/// Threads: the one that asks; wake(): any.
class AskingLines {
 public:
  enum class Use : std::uint8_t { asks_sentinel, hears_sentinel, asks_server };
  struct Key {
    Use use;
    topology::Endpoint to;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// To one question, by ask() or wait(). Nothing has come: `replies` is empty, and `why` says why.
  using Answer = std::function<void(const std::vector<Value>& replies, std::string_view why)>;
  struct Hearer {
    std::function<void(const topology::Endpoint&)> is_back;  ///< it is subscribed to
    std::function<void(std::string_view)> heard;             ///< a message
  };

  /// The passwords of `settings`: those of Sentinels for them, those of the servers for servers.
  /// `resolver` outlives it.
  AskingLines(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls,
              Resolver& resolver, Hearer hearer = {});
  ~AskingLines();

  /// Whether a thread that asks by these settings can go on with others.
  static bool are_alike(const PoolSettings& one, const PoolSettings& other);

  /// `certified`: the name that its certificate bears; empty: its host.
  void ask(const Key& key, const std::vector<std::vector<std::string>>& commands, Answer answer,
           const std::string& certified = {});
  /// Keeps it connected.
  void listen(const Key& key);
  /// Nothing: its name is being looked up; then wait() returns.
  std::optional<Resolver::Found> addresses_of(const topology::Endpoint& node);
  /// Until something has come, wake() is called or the time is over, or a little earlier.
  void wait(SteadyTime until);
  void wake() noexcept;

 private:
  class Line;

  Line& line(const Key& key);
  void forget_lines(SteadyTime now);

  const std::shared_ptr<const PoolSettings> settings_;
  const std::shared_ptr<const PoolTls> tls_;
  const Hearer hearer_;
  const std::shared_ptr<const Descriptor> wake_;
  KnownNames names_;
  std::map<Key, std::unique_ptr<Line>> lines_;
};

}  // namespace sluice::proxy::flow
