/// What a client has subscribed to: channels, patterns, sharded channels.
///
/// A channel's home is that of its name, as of a key, so PUBLISH and SUBSCRIBE meet there; a
/// pattern, and with `distribution: random` every channel, is subscribed on all servers that are
/// well; so is a notification of keys (__keyspace@0__:..., __keyevent@0__:...), which each server
/// publishes for its own. For each home the client has a connection of its own, made when it is
/// needed. It speaks RESP3 whatever the client speaks: there a message cannot be taken for a reply.
/// (So servers have to be of Redis 6 or later.) For a client of RESP2 the first byte is changed, no
/// more.
///
/// Guarantee: confirmations come in the order asked and count as Redis counts, over all servers; a
///   message comes behind the confirmation of its subscription, and messages of one server come in
///   its order.
/// Not guaranteed: that the client sees a message published while a server was lost. The client's
///   connection is closed after a loss, or when a channel has another home because of a reload or
///   an ejected server: its library subscribes again and knows that messages may be missing. If the
///   proxy subscribed again by itself, it would hide the gap. Counted in lost_subscribers. Only a
///   connection that carries nothing but notifications of keys is made again by the proxy: the
///   other servers' go on, and the log tells of the gap.
/// Bounds: a client that leaves more than client_output_limit of messages unread is closed, counted
///   in slow_subscribers; so many bytes of names (with 64 for each) it may subscribe to.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/client.hpp"
#include "proxy/flow/home_holder.hpp"

namespace sluice::proxy::flow {

class Subscriptions final : public HomeHolder {
 public:
  enum class Kind : std::uint8_t { channel, pattern, sharded };
  static constexpr std::size_t kinds = 3;

  /// Both outlive it.
  Subscriptions(Client& client, Pool& pool);
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// The client is held until all is confirmed.
  void subscribe(Kind kind, Words names);
  /// Without names: all of the kind.
  void unsubscribe(Kind kind, Words names);

  /// No subscription is left, and no confirmation to come.
  bool is_over() const noexcept { return count() == 0 && awaited_.empty(); }

  /// So many patterns, or channels and sharded channels.
  std::size_t count(bool patterns) const noexcept {
    return patterns ? counted_[1] : counted_[0] + counted_[2];
  }

  /// Called when homes may have moved. False: they have, and the client's connection ends. A server
  /// that is new is subscribed to for notifications of keys, one that is gone is left.
  bool check_homes() override;
  /// Ends the client's connection if it has subscribed to what it may not hear.
  void check_rights(const Rights& rights);

 private:
  class Connection;
  using Names = std::map<std::string, Server*, std::less<>>;  // null: on all servers

  /// A confirmation that the client is to get.
  struct Awaited {
    Kind kind;
    bool begins;
    bool changes;  // false: it is subscribed, or not, as before
    bool named;
    std::string name;
    std::size_t missing = 0;  // servers that have not confirmed it
    int hops = 0;             // redirections
  };

  Names& names(Kind kind) noexcept { return names_[static_cast<std::size_t>(kind)]; }
  std::size_t& counted(Kind kind) noexcept { return counted_[static_cast<std::size_t>(kind)]; }
  std::size_t count() const noexcept { return counted_[0] + counted_[1] + counted_[2]; }
  bool is_everywhere(Kind kind, std::string_view name) const noexcept;
  /// Notifications of keys are all that the client hears on this connection.
  bool hears_notifications_only(const Connection& connection) const noexcept;
  /// What is subscribed on all servers is notifications of keys, and there are some.
  bool hears_notifications_everywhere() const noexcept;
  bool may_subscribe(Kind kind, Words names);
  bool is_apart(std::string_view verb) const noexcept;

  void change(Kind kind, std::string_view name, bool begin);
  Connection& connection_to(Server& server);
  void send();
  void announce();
  void append_confirmation(std::string& out, const Awaited& awaited);
  void all_announced();
  void expect_confirmation();

  void lost(Connection& connection, std::string_view reply);
  void forgo(Connection& connection);
  void make_up_later();
  void make_up();
  void leave_retired();
  void pushed(Connection& connection, std::string_view message);
  bool go_on(Connection& connection, std::string_view error);
  void confirmed(Connection& connection);
  void pass(std::string_view message);
  void close_if_slow();
  /// Ends the client; one that waits for a confirmation is sent `reply`.
  void end(std::string_view reply);

  Client& client_;
  Pool& pool_;
  std::array<Names, kinds> names_;
  std::array<std::size_t, kinds> counted_{};  // confirmed to the client
  std::size_t name_bytes_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Awaited> awaited_;
  std::uint64_t first_awaited_ = 0;  // the number of its front
  std::string deferred_;             // messages behind confirmations that have not come
  loop::Loop::TimerId timer_{};
  loop::Loop::TimerId make_up_timer_{};
  bool holds_ = false;  // the client
  bool ended_ = false;
};

}  // namespace sluice::proxy::flow
