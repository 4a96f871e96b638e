/// What the storm has to know of a language, Redis or memcached: requests that a hostile client may
/// send, requests whose answers are known to the byte, and how to tell what a server has executed.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/request_stream.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/support/proxy_under_test.hpp"

namespace sluice::test {

/// A request and the one right answer.
struct Question {
  std::string bytes, answer;
  std::vector<std::string> misses = {};  ///< what is right as well when a server has lost values
};

/// What the proxy's own reader and plan make of the bytes of a hostile client.
struct Understanding {
  std::string completion;           ///< bytes that make whole the last request
  std::size_t least = 0, most = 0;  ///< replies that are due
  bool ends = false;                ///< the proxy will close the connection
  bool may_wait = false;            ///< a request waits on its server, or its client listens
  bool is_counted = true;           ///< false: replies depend on the state of the connection
  std::vector<std::string> meant;   ///< what servers may execute for it, as in executed()
};

class Tongue {
 public:
  virtual ~Tongue() = default;

  /// Starts servers, without what earlier ones have kept; pool() then tells of them.
  virtual void start_servers() = 0;
  virtual PoolLines pool() const = 0;
  static constexpr std::size_t server_count = 2;
  /// Of a server: the pool's lines stay right.
  virtual void kill_server(std::size_t number) = 0;
  virtual void revive_server(std::size_t number) = 0;
  virtual pid_t server_pid(std::size_t number) const = 0;
  /// The values that questions() and sentinels ask for, and those that hostile requests find.
  virtual std::vector<Question> fixture(std::size_t canaries, std::size_t clients) const = 0;

  virtual std::string hostile_request(Random& random) const = 0;
  /// `token` is new each time, and in the answer.
  virtual Question sentinel(std::size_t client, std::uint64_t token) const = 0;
  /// With one reply.
  virtual Question question(std::size_t canary, Random& random) const = 0;

  /// `bytes` of one connection, from the beginning of a request.
  virtual Understanding understand(std::string_view bytes) = 0;
  virtual std::unique_ptr<proxy::ReplyReader> reply_reader() const = 0;

  /// What the servers have executed since the last call, one normal text for a command and a key.
  /// What canaries, sentinels and the proxy itself ask for is left out.
  virtual std::vector<std::string> executed() = 0;
  /// Commands without consent that a server has executed all the same. Asks the servers: slow.
  virtual std::vector<std::string> forbidden() = 0;
};

/// What both have: servers of their kind, and the language as the proxy reads it.
template <class Server>
class TongueOf : public Tongue {
 public:
  explicit TongueOf(bool strict) : strict_(strict) {}

  std::unique_ptr<proxy::ReplyReader> reply_reader() const override {
    return protocol_->reply_reader();
  }
  void kill_server(std::size_t number) override { servers_[number]->kill(); }
  void revive_server(std::size_t number) override { servers_[number]->start(); }
  pid_t server_pid(std::size_t number) const override { return servers_[number]->pid(); }

 protected:
  static constexpr std::size_t keys_of_canary = 8;
  static std::string canary_key(std::size_t canary, std::size_t place) {
    return fmt::format("canary:{}:{}", canary, place);
  }

  const bool strict_;
  std::unique_ptr<proxy::Protocol> protocol_;
  std::array<std::optional<Server>, server_count> servers_;
};

/// `strict`: the pool is twemproxy's, and so is all that canaries and sentinels ask for.
std::unique_ptr<Tongue> make_memcached_tongue(bool strict);
std::unique_ptr<Tongue> make_redis_tongue(bool strict);
inline std::unique_ptr<Tongue> make_tongue(std::string_view language, bool strict = false) {
  return language == "redis" ? make_redis_tongue(strict) : make_memcached_tongue(strict);
}

/// Most bytes that an understanding adds; what lacks more is said to wait.
inline constexpr std::size_t longest_completion = 256 << 10;

}  // namespace sluice::test
