/// A TCP proxy in front of a server that speaks RESP, which loses, delays, doubles or reorders what
/// goes through it as a test says. Real sockets on both sides, so that whatever speaks to a Redis
/// server can be tried, in any language.
///
///     FaultProxy proxy{server.port()};
///     const auto store = open(proxy.url());
///     const auto lost = proxy.on(reply_to("INCR"), {LineFault::cut});
///     ...
///     EXPECT_EQ(proxy.hits(lost), 1U);
///
/// It reads whole requests and replies (RESP2, RESP3, pub/sub) and knows which reply answers which
/// request; CLIENT REPLY and MONITOR, which break that pairing, are not for it. Nothing is delayed
/// by time: what is held waits until the test lets it go.
/// Threads: any. It has one thread of its own, which ends with it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "sluice/store.hpp"
#include "support/proxied_line.hpp"

namespace sluice::test {

/// Runs on the proxy's thread, and must not call the proxy.
using Match = std::function<bool(const Passing&)>;

Match any_request();
Match any_reply();
/// By the name of the command, in any case; by EVALSHA or EVAL of the script. A server that does
/// not know a script yet is asked twice; its NOSCRIPT is not a reply to the script.
Match request_of(std::string_view command);
Match request_of(const Script& script);
Match reply_to(std::string_view command);
Match reply_to(const Script& script);
/// Published on `channel`, whether heard by SUBSCRIBE or by PSUBSCRIBE.
Match message_on(std::string_view channel);
Match on_connection(std::size_t number, Match match);

/// What to do, and to which of those that match: to `times` of them after `skip`.
struct Deed {
  static constexpr std::size_t always = std::numeric_limits<std::size_t>::max();

  LineFault fault = LineFault::none;
  std::size_t bytes = 0;  ///< of LineFault::cut
  std::size_t skip = 0;
  std::size_t times = 1;
  std::string error{};  ///< of LineFault::lie
};

class FaultProxy {
 public:
  using Way = ProxiedLine::Way;
  using RuleId = std::size_t;
  /// What happens to those who connect.
  enum class Door : std::uint8_t {
    open,
    held,    ///< connected by the kernel, but nobody answers until the door opens
    closed,  ///< refused
  };

  explicit FaultProxy(std::uint16_t server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  /// The first rule that matches and is not used up decides; one of LineFault::none only counts.
  RuleId on(Match match, Deed deed);
  /// What was held stays so.
  void forget_rules();
  /// To how many the rule has done its deed.
  std::size_t hits(RuleId rule) const;
  /// Waits until there are so many. False: not within ten seconds.
  [[nodiscard]] bool await_hits(RuleId rule, std::size_t many = 1) const;
  /// Waits until so many connections have requests held whose client is gone. False: not within ten
  /// seconds.
  [[nodiscard]] bool await_stranded(std::size_t many = 1) const;

  /// What was held goes on. Returns when the server has taken the requests whose clients are gone.
  /// Throws std::runtime_error when it does not within ten seconds.
  void let_go();
  /// Cuts all connections.
  void cut();
  /// The same; who connects again gets to another server.
  void turn_to(std::uint16_t server_port);
  /// Cuts each connection that begins from here on when so many bytes have gone this way.
  void cut_next_at(Way way, std::uint64_t byte);
  void set_door(Door door);
  /// How many connections there are.
  std::size_t connections() const;

 private:
  struct Rule {
    Match match;
    Deed deed;
    std::size_t matched = 0;
    std::size_t hits = 0;
  };
  struct Connection;
  struct Watched;
  using Connections = std::vector<std::unique_ptr<Connection>>;

  Fate judge(const Passing& passing);
  void run();
  void accept_one();
  void wake() const;
  std::vector<Watched> watched() const;
  void listen();

  std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  Descriptor wake_;         // an eventfd
  Descriptor reservation_;  // bound and deaf: keeps the port while the door is closed

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool over_ = false;
  Door door_ = Door::open;
  Descriptor listener_;
  Connections connections_;
  std::size_t accepted_ = 0;
  std::vector<Rule> rules_;
  std::size_t forgotten_ = 0;  // rules before the first of rules_
  std::vector<std::pair<Way, std::uint64_t>> cuts_;

  std::thread thread_;
};

}  // namespace sluice::test
