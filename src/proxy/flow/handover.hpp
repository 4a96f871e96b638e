/// Clients in an upgrade: a worker of the process that leaves hands the connections of its clients
/// to the successor, each as soon as the client is at rest, with what the client has chosen and
/// what was read of its next request.
///
/// Each worker has a socket pair of its own (SOCK_SEQPACKET), whose other end a worker of the
/// successor has. A message is an array of RESP words; the descriptor of the client's connection
/// goes beside the first one (SCM_RIGHTS):
///
///     predecessor: scripts 0 pool alpha ...  of which clients know, in the file beside it
///     predecessor: client 17 pool alpha listen 127.0.0.1:22121 id 4 resp 3 ...
///     successor:   taken 17      it reads from the connection from now on
///                  refused 17    it has no such pool, or no room
///
/// Guarantee: at most one process reads from a connection. The predecessor has stopped before it
///   sends it. It goes on only when the successor has refused it, or is gone without having taken
///   it; the successor begins only when it has said so.
/// Bounds: most_in_transit clients at a time, most_unread bytes of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "loop/loop.hpp"
#include "net/socket.hpp"

namespace sluice::proxy::flow {

class PoolClients;

/// What a client is and has chosen, as one process tells another. What its user may do is not part
/// of it: the successor's configuration says that.
struct HandedClient {
  std::string pool;
  std::string listen;  ///< the pool's address
  bool redis = false;
  std::uint64_t id = 0;
  int resp = 2;
  std::optional<int> db;     ///< empty: the pool's
  bool wants_login = false;  ///< the pool
  bool logged_in = false;
  std::uint8_t muted = 0;  ///< ReplyMode::muted()
  std::uint64_t age = 0;   ///< ms since it has come, or has been logged out
  std::uint64_t idle = 0;  ///< ms since it was heard or written to
  std::string told;        ///< what it has said of itself, its user among it
  std::string unread;      ///< what was read and not yet served

  bool operator==(const HandedClient&) const = default;
};

/// As the words of a message. A name that the reader does not know is skipped, so that a later
/// version may tell more.
std::string to_message(std::string_view verb, std::uint64_t ticket, const HandedClient& client);

struct HandoverMessage {
  std::string verb;
  std::uint64_t ticket = 0;
  HandedClient client;
};
/// Empty: it is none.
std::optional<HandoverMessage> read_message(std::string_view bytes);

/// The predecessor's end.
class ClientHandover final : public loop::EventHandler {
 public:
  /// Of the messages; 0: a process that knows none; 1: one that knows no scripts.
  static constexpr char version = 2;
  static constexpr std::size_t most_in_transit = 64;
  static constexpr std::size_t most_unread = std::size_t{32} << 10;

  /// `version`: the successor's.
  ClientHandover(loop::Loop& loop, Descriptor channel, char version = ClientHandover::version);
  ~ClientHandover() override;

  bool is_open() const noexcept { return channel_.is_open(); }
  /// So many clients the successor has taken.
  std::size_t taken() const noexcept { return taken_; }

  /// Sends a client of `from`, whose connection the caller reads no more. True: it is on its way;
  /// the caller closes its own descriptor, and `from` gets the client back if the successor does
  /// not take it. False: not now.
  bool offer(HandedClient client, int descriptor, PoolClients& from);
  /// Before the clients of the pool. `scripts`: as ScriptCache::written().
  void hand_scripts(const HandedClient& of_pool, std::string_view scripts);

  void ready(Readiness readiness) override;

 private:
  struct InTransit {
    HandedClient client;
    Descriptor connection;
    PoolClients& from;
  };

  void decided(const HandoverMessage& message);
  void give_back(InTransit passage);
  void lose();

  loop::Loop& loop_;
  Descriptor channel_;
  const bool knows_scripts_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, InTransit> in_transit_;
  std::size_t taken_ = 0;
};

/// The successor's end.
class ClientHeritage final : public loop::EventHandler {
 public:
  /// The clients of the pool that has the client's address or, if none has, its name. Null: none
  /// fits.
  using Find = std::function<PoolClients*(const HandedClient& client)>;

  ClientHeritage(loop::Loop& loop, Descriptor channel, Find find);
  ~ClientHeritage() override;

  /// The predecessor may have more clients to hand over.
  bool is_open() const noexcept { return channel_.is_open(); }

  void ready(Readiness readiness) override;

 private:
  bool receive();
  bool answer(std::string_view verb, std::uint64_t ticket);
  void close() noexcept;

  loop::Loop& loop_;
  Descriptor channel_;
  Find find_;
};

}  // namespace sluice::proxy::flow
