/// What a connection says first, and what it must hear before it carries calls. Decided here
/// without any I/O.
///
/// One write: HELLO 3 with AUTH and SETNAME, SELECT, READONLY, WAIT for no replica, SUBSCRIBE for
/// the channels of before, and a PING, because a server that is still loading its data says so only
/// to that. A password without a user is sent once more as AUTH alone: only that tells of a server
/// that asks for none. A channel that the user has no right to any more is left out.
#pragma once

#include <string>
#include <vector>

#include "redis/redis_store.hpp"
#include "sluice/value.hpp"

namespace sluice::redis {

class Greeting {
 public:
  /// `counts_replicas`: WAIT will be called: that it may be is asked first.
  Greeting(const RedisOptions& options, std::vector<std::string> channels,
           bool counts_replicas = false);

  const std::string& bytes() const noexcept { return bytes_; }
  /// Takes the next reply or push. True: that was the last. Throws Error (effect none) when the
  /// server refuses us.
  bool take(const Value& reply);
  /// The server has answered something.
  bool has_begun() const noexcept { return taken_ > 0; }
  /// What stands behind it, it does not say.
  bool is_of_proxy() const noexcept { return is_of_proxy_; }
  /// The id that a node of a cluster tells; empty: none.
  const std::string& node_id() const noexcept { return node_id_; }
  struct Refused {
    std::string channel;
    std::string why;
  };
  const std::vector<Refused>& refused() const noexcept { return refused_; }
  /// What the user should know about the server; empty: nothing.
  const std::string& warning() const noexcept { return warning_; }

 private:
  enum class Step { hello, password, select, identity, readonly, wait, subscribe, ping };
  void add(Step step, std::vector<std::string_view> words);
  void check_kind(Step step, const Value& reply) const;
  void check_mode(const Value& hello) const;
  void check_role(const Value& hello) const;
  void check_wait(const Value& reply) const;
  [[noreturn]] void refuse(Step step, const std::string& reply) const;

  std::string server_;
  ServerKind kind_;
  bool is_for_master_;
  std::string bytes_;
  std::vector<Step> steps_;
  std::size_t taken_ = 0;
  const std::vector<std::string> channels_;
  std::size_t subscribed_ = 0;  // of them, or refused
  std::vector<Refused> refused_;
  bool is_of_proxy_ = false;
  std::string node_id_;
  std::string warning_;
};

}  // namespace sluice::redis
