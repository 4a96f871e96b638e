/// A server of a move of keys, as its mover sees it: who may log in there, and what it holds. See
/// docs/decisions/0020-keys-move-between-rings.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/endpoint.hpp"
#include "proxy/config/ring_move.hpp"
#include "proxy/process/admin_client.hpp"

namespace sluice::proxy::move {

using config::MoveUser;

/// Threads: one. Its commands throw Error that names the server: {connection} where it cannot be
/// reached, {bad_argument} where it refuses. Each may be repeated.
class GuardedServer {
 public:
  using Tls = process::AdminClient::Tls;

  /// `before`: the user of the ring before the move; `during`: that of the move; `after`: of the
  /// ring to be. `tls`: empty: it is spoken to plainly.
  GuardedServer(net::Endpoint endpoint, MoveUser before, MoveUser during, std::string after,
                Tls tls);

  const net::Endpoint& endpoint() const noexcept { return endpoint_; }
  const std::string& name() const noexcept { return name_; }

  /// The user of the move is there, with the rights of the one before and those that moving takes.
  /// Throws Error{bad_argument}, too, where it would speak to other servers otherwise than we do.
  void admit();
  /// The users before and after have no rights to keys any more, and their connections are closed,
  /// but for those of Sentinels and replicas, which such users may be: they need no keys. What such
  /// a user has sent and the server has not done yet is not done. From now on also after the server
  /// has forgotten it. Until their rights come back a user of their own, who is off, keeps them.
  void fence();
  /// Both have their rights again.
  void lift();
  /// The user of the ring to be has its rights again.
  void allow_after();
  /// The users of connections whom the fence does not concern: "'name' at ADDRESS, ...".
  std::string strangers();
  /// The user is gone, and with it its connections.
  void forget(std::string_view user);
  /// Commands of the user before that wait in the server (BLPOP) wait no more: -UNBLOCKED.
  void end_waiting();

  /// The databases that have keys.
  std::vector<int> databases();
  std::int64_t count_keys();
  struct Scanned {
    std::string cursor;  ///< "0": that was all
    std::vector<std::string> keys;
  };
  Scanned scan(int database, const std::string& cursor);
  /// Moves keys there. Empty: they are not here any more; else what the server says.
  std::string migrate(int database, std::span<const std::string> keys, const net::Endpoint& to);
  /// Bytes of memory of each; -1: it is not here.
  std::vector<std::int64_t> sizes(int database, std::span<const std::string> keys);
  /// A command in this database.
  Value ask_in(int database, std::span<const std::string_view> words);
  /// Throws for an error.
  Value order_in(int database, std::span<const std::string_view> words);
  /// It is there, and has what admit() and fence() made; else it gets that again.
  void look_after();

 private:
  Value ask(std::span<const std::string_view> words);
  Value ask(std::initializer_list<std::string_view> words) {
    return ask({words.begin(), words.size()});
  }
  /// Throws for an error.
  Value order(std::initializer_list<std::string_view> words);
  void connect();
  void use(int database);
  bool log_in(const MoveUser& user);
  void check_tls();
  void make_user();
  /// A line of CLIENT LIST: "id=7 addr=... name=value ...".
  struct ClientLine {
    std::string text;
    std::string_view id() const;
    std::string_view value(std::string_view name) const;
    bool wants_keys() const;
  };
  std::vector<ClientLine> clients();
  using Rules = std::vector<std::string>;
  std::optional<Rules> rights_of(std::string_view user);
  std::optional<Rules> kept_rights_of(std::string_view user);
  void set_user(std::string_view user, const Rules& rules);
  void shut_out(const std::string& user);
  void give_back(const std::string& user);
  [[noreturn]] void refuse(std::string_view command, const Value& error) const;

  net::Endpoint endpoint_;
  std::string name_;
  MoveUser before_, during_;
  std::string after_;
  Tls tls_;
  std::optional<process::AdminClient> line_;
  int database_ = 0;
  bool is_admitted_ = false, is_fenced_ = false;
};

}  // namespace sluice::proxy::move
