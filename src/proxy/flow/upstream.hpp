/// One connection to a server, over which the requests of many clients go one after another.
///
/// It connects when there is something to send, and again after it was lost. Replies come in the
/// order of the requests; the order alone tells which reply is whose, so a connection on which it
/// is in doubt (bytes that are no reply, a reply to no request) is closed.
///
/// When a request times out its receiver is told, and the reply that may still come is dropped; the
/// requests behind it keep their own time. A connection on which the server is silent for twice the
/// timeout is closed with all that is under way. (Strict: as twemproxy, at the first request that
/// is late.)
///
/// Requests wait until the server has accepted the handshake: none is done for another user or in
/// another database than was meant. If the server refuses, its error answers them. (Strict: they
/// follow at once, as in twemproxy.)
#pragma once

#include <memory>
#include <string>

#include "loop/stream.hpp"
#include "net/endpoint.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Server;

/// What a client has chosen of its connection. Clients with different modes share no connection to
/// a server.
/// Four bytes, since each client has one.
struct ConnectionMode {
  int resp : 4 = 2;
  int db : 28 = 0;
  bool operator==(const ConnectionMode&) const = default;
};

/// Which of a server's shared connections: the same one of another server is for the same clients.
struct Lane {
  ConnectionMode mode;
  std::uint32_t number = 0;
};

/// Gets what a server says by itself, on a connection for one client alone.
class PushReceiver {
 public:
  virtual ~PushReceiver() = default;
  /// A push, or an error that answers no request.
  virtual void pushed(std::string_view message) = 0;
  /// The connection is closed. `reply`: what a request would have been answered.
  virtual void lost(std::string_view reply) = 0;
};

/// The first requests on a connection: AUTH, HELLO, SELECT.
struct Handshake {
  std::string bytes;
  std::uint32_t replies = 0;
  /// No part of it is a client's choice: a refusal counts as a failure of the server.
  bool is_of_pool = true;
};

class Upstream final : public loop::Stream, private Receiver {
 public:
  /// `server` outlives it. `lane`: of a connection that clients share.
  Upstream(loop::Loop& loop, Server& server, Handshake handshake, Lane lane = {});
  ~Upstream() override;

  /// The outcome comes by request.receiver, possibly before this returns (when no connection can
  /// even be begun).
  void send(Request& request, std::string_view bytes);
  /// A request that no reply will come to.
  void send_only(std::string_view bytes);
  /// A request whose reply is dropped.
  void send_aside(std::string_view bytes);

  /// What waits to be written.
  std::size_t unsent() const noexcept { return loop::Stream::unsent() + behind_handshake_.size(); }
  bool idle() const noexcept { return queue_.empty() && unsent() == 0; }
  /// The server takes its requests so slowly that it should get no more until it has taken all.
  bool is_full() const noexcept { return is_full_; }
  bool connected() const noexcept { return phase_ == Phase::open; }
  std::size_t under_way() const noexcept { return queue_.size(); }
  /// When it began to connect.
  SteadyTime begun() const noexcept { return begun_; }
  Server& server() const noexcept { return server_; }
  const Lane& lane() const noexcept { return lane_; }
  /// For how long it owes a reply and has said nothing; of one that may wait (BLPOP), too.
  std::chrono::nanoseconds silence() const noexcept;
  /// Changes when the connection is lost or closed.
  using loop::Stream::generation;
  /// Whether requests may take as long as they like; only connecting and the handshake are timed
  /// then. For connections of one client.
  void set_untimed(bool untimed) noexcept { untimed_ = untimed; }
  bool is_untimed() const noexcept { return untimed_; }
  /// Null: what the server says by itself is an error.
  void set_push_receiver(PushReceiver* receiver) noexcept { push_receiver_ = receiver; }
  LoadedScripts& scripts() noexcept { return scripts_; }

  /// Where it is connected to, or connecting. Null: nowhere.
  const net::Address* address() const noexcept {
    return phase_ == Phase::open || phase_ == Phase::connecting ? &address_ : nullptr;
  }
  /// Connects if it does not already; failures are only logged and counted.
  void connect();
  /// The addresses that connect() wanted are known; none: there is no such host.
  void resolved();
  /// `handshake` from now on; `change` brings it there, before what is sent next. If the server
  /// refuses, its error answers what waits. REQUIRES: all that was sent is answered.
  void adopt(Handshake handshake, const Handshake& change);
  /// All that is under way fails.
  void close(Failure failure);

  /// When check_time() has something to do; max(): nothing is under way.
  SteadyTime next_deadline() const noexcept;
  void check_time();

 private:
  static constexpr std::size_t most_unsent = std::size_t{4} << 20;

  enum class Phase : std::uint8_t { closed, resolving, connecting, open };

  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_->missing(); }
  void ended(int error) override;
  void writable() override;
  void flushed() override;
  bool heeds_last_words() const noexcept override { return true; }

  void replied(Request& request, std::string_view reply) override;  // to the handshake
  void failed(Request& request, Failure failure) override;

  bool is_connecting() const noexcept;
  void start();
  void shake_hands(const Handshake& handshake);
  bool begin_connection();
  bool take_descriptor() noexcept;
  void say(std::string_view bytes);
  void set_full(bool full) noexcept;
  void check_begun();
  bool push(std::string_view message);
  void disconnect() noexcept;
  void turn_away(std::string_view reply);
  bool deliver(std::string_view reply);
  void fail(Request& request, Failure failure);
  template <class End>
  void close_with(const std::string& reply, End end);
  Request& take_from(UpstreamQueue& queue) noexcept;
  void lost(Failure failure, SteadyTime since);
  void time_out_all();
  void time_out_late();
  void refuse_long_reply();
  void keep(Request& request, std::string_view bytes);
  void take_kept(Request& request, bool is_wanted);

  Server& server_;
  const Lane lane_;
  Handshake handshake_;
  std::unique_ptr<ReplyReader> reader_;
  UpstreamQueue queue_;
  loop::Buffer kept_;  // bytes of the requests in queue_ that are `kept`
  LoadedScripts scripts_;
  PushReceiver* push_receiver_ = nullptr;
  loop::Buffer behind_handshake_;     // bytes that wait until it is accepted
  std::uint32_t handshake_left_ = 0;  // replies to it that have not come
  bool untimed_ = false;
  bool is_full_ = false;
  bool has_descriptor_ = false;               // of those that the process may have
  Failure begin_failure_ = Failure::refused;  // why no connection could be begun
  Phase phase_ = Phase::closed;
  net::Address address_;
  std::size_t tried_ = 0;  // addresses, since it began to connect
  SteadyTime begun_{};     // when the connection was begun
  SteadyTime heard_{};     // when the server last spoke, or was asked while nothing was under way
};

}  // namespace sluice::proxy::flow
