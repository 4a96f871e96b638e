/// A client's connection: its requests in the order asked, each served as its Plan says, and their
/// replies in the same order.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "front/reply_mode.hpp"
#include "loop/stream.hpp"
#include "net/socket.hpp"
#include "proxy/flow/client_state.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

/// What can be told of a client that is connected.
struct ClientFigures {
  std::uint64_t id = 0;  ///< as CLIENT ID says it
  std::string pool;
  std::string address;  ///< where it comes from; "unix" for a unix socket
  std::chrono::milliseconds idle{0};
  std::size_t under_way = 0;  ///< requests whose replies it has not been sent
  std::size_t bytes = 0;      ///< kept for it
};

/// Who a client is and what it has chosen: all of it goes with RESET, and each connection that
/// serves the client is brought to its `mode`.
struct SessionState {
  ConnectionMode mode;
  bool has_chosen_db = false;  ///< by SELECT; else it has the pool's
  bool logged_in = false;      ///< or nobody has to
  bool read_only = false;      ///< it is a user who may only read
  Rights* rights = nullptr;  ///< its user's, of the pool's protocol; null: nothing is said of them
};

class ClientLimits;
class ClientSession;
class Pool;
struct HandedClient;

class Client final : public loop::Stream, public Receiver {
 public:
  /// So long a client says nothing before it is taken to be quiet: much longer than a round trip
  /// within a site.
  static constexpr std::chrono::milliseconds quiet_time{50};

  /// `id`: as CLIENT ID says it. `place`: its index among the clients of the pool.
  Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t id,
         std::size_t place);
  ~Client() override;

  /// What it was and had chosen in another process, whose pool may have had other settings: of
  /// these what apply() says.
  void take_over(const HandedClient& client);
  /// The successor has refused it.
  void stay() noexcept { stays_ = true; }

  /// At once: what is under way is forgotten.
  void close() noexcept;
  /// After the replies to what is under way.
  void close_later();
  /// Closes a client that has been quiet for a moment. A busy client stays: while its connection
  /// ended it would send requests, and lose them.
  void drain();
  /// Closes as soon as nothing is under way, also a busy client.
  void drain_now();
  /// Reads no more, and goes to the successor as soon as nothing is under way; what is in the
  /// middle of a transaction, of a blocking command, of subscriptions or of a long request goes on
  /// until that is over. False: it cannot go there.
  bool hand_over();
  /// The pool's settings were `before`. Requests under way are answered before the next is read, so
  /// that none overtakes. What its user may do no more, it may do no more from now on; a client
  /// whose user may nothing leaves behind the replies to what is under way.
  void apply(const PoolSettings& before);

  /// What is under way is answered before the next request is read: that would overtake it.
  void finish_earlier();
  /// Called by the pool, which has taken the client off its list of those that wait.
  void there_is_room();
  /// The turn of the request that was beyond a rate limit has come.
  void end_delay();
  ClientFigures figures() const;
  /// It is the mirror of another pool: it may do all, and has no limits.
  void trust() noexcept;
  bool is_mirror() const noexcept { return is_mirror_; }
  /// As CLIENT LIST and CLIENT INFO tell it, in Redis's format, with what a proxy can know.
  std::string line() const;
  std::string_view user() const noexcept;
  bool is_subscribed() const noexcept;
  /// What is buffered or kept for it, in bytes.
  std::size_t holds() const noexcept { return memory() + parked_ + reader_bytes_; }
  /// It has not logged in, or not even ended the TLS handshake, and should have by `deadline`.
  bool is_late(SteadyTime deadline) const noexcept {
    return stranger_since_ < deadline && !(session_state_.logged_in && is_established());
  }

  std::size_t place() const noexcept { return place_; }
  void set_place(std::size_t place) noexcept { place_ = static_cast<std::uint32_t>(place); }
  std::uint64_t id() const noexcept { return id_; }
  bool is_idle() const noexcept;
  bool is_closing() const noexcept { return state_.is_closing(); }
  SteadyTime last_active() const noexcept { return last_active_; }

  // For its session.
  Pool& pool() const noexcept { return pool_; }
  ConnectionMode& mode() noexcept { return session_state_.mode; }
  void note_chosen_db() noexcept { session_state_.has_chosen_db = true; }
  const SessionState& session_state() const noexcept { return session_state_; }
  void set_session_state(const SessionState& state) noexcept;
  front::ReplyMode& reply_mode() noexcept { return reply_mode_; }
  /// A connection for it alone. Empty: there are too many. From the first on its own connection is
  /// kept alive, so that the server's is not held for a peer that has vanished.
  BorrowedUpstream borrow(Server& home, const ConnectionMode& mode);
  /// In its turn, behind the replies to what is under way.
  void answer(std::string_view reply);
  void answer(Failure failure);
  /// A request at the end of the client's queue; the caller sees to it that it gets an outcome,
  /// replied() or failed().
  Request& enqueue(const Plan& plan);
  /// The server of its keys, or why there is none.
  struct Home {
    Server* server = nullptr;
    Failure failure = Failure::refused;
  };
  Home home_for(Words words, const Plan& plan) const;
  /// Null: the client has been told why, if it wants a reply.
  Server* home_or_answer(Words words, const Plan& plan);
  /// Whether what was asked before may be asked once more where its keys are now: not while one of
  /// them moves, since the first may have been answered there.
  bool may_go_again(Words words, const Plan& plan) const;
  void send(Server& home, Words words, std::string_view bytes, const Plan& plan);
  /// Its next requests are not read until release().
  void hold() { pause_for(Pause::session); }
  void release();
  /// The request that is being served comes again when end_wait_for_keys() is called.
  void wait_for_keys() { pause_for(Pause::keys); }
  void end_wait_for_keys();
  /// The request that is being served comes again when all before it have been answered.
  void postpone() { pause_for(Pause::turn); }
  /// Whether no request is before it.
  bool is_next() const noexcept { return queue_.empty(); }
  using loop::Stream::has_hung_up;
  /// What a server says by itself: written at once, between replies. REQUIRES: nothing is under
  /// way, or RESP3.
  void push(std::string_view bytes) { write(bytes); }

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;
  void kept_for(std::ptrdiff_t bytes) override;
  std::uint64_t detoured() override;
  std::string peer() const override { return net::peer_of(descriptor()); }

 private:
  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_ ? reader_->missing() : 1; }
  void ended(int error) override;
  void flushed() override;
  bool gives_way() override;
  void hung_up() override;

  void serve(Words words, std::string_view bytes);
  void serve(const Plan& plan, Words words, std::string_view bytes);
  /// Whether its session looks at every request.
  bool is_watched() const noexcept { return !session_state_.logged_in || session_; }
  bool is_refused(const Plan& plan, Words words);
  void rest_if_ahead();
  bool is_intercepted(const Plan& plan, Words words, std::string_view bytes);
  bool has_keys_at_home(Words words, std::string_view bytes, const Plan& plan);
  void serve_and_mirror(const Plan& plan, Words words, std::string_view bytes);
  void tell_mirror(Request& request, std::string_view reply);
  void forward(Words words, std::string_view bytes, const Plan& plan);
  void scatter(Words words, std::string_view bytes, const Plan& plan);
  bool meets_full_server(Words words, const Plan& plan) const;
  bool is_worth_keeping(const Plan& plan, std::size_t size) const noexcept;
  bool ask_again(Request& request, Failure failure);
  Server* replica_for(const Server& home, std::size_t size, const Plan& plan);
  bool may_read_from_replica(const Plan& plan) const;
  bool is_enough(std::string_view reply_of_replica) const;
  bool ask_master(Request& request);
  ClientSession& session();
  void last_word(const Plan& plan);
  void overflow();
  void park(Request& request, std::string_view reply);
  void pass_on(std::string_view reply);
  void abandon_queue() noexcept;
  void set_rights(SessionState state, bool wanted_login);
  bool can_be_handed() const noexcept;
  HandedClient handed() const;
  void release_answered();
  std::size_t serve_all(std::string_view bytes);
  void weigh_reader() noexcept;
  bool keep_within_budget(std::size_t unread);
  void turn_away_http();
  void take_limits();
  /// Null: the pool has none.
  ClientLimits* limits() const noexcept;
  bool is_within_limits(const Plan& plan, std::size_t bytes);
  void tell_limited();
  bool is_silent(Quiet quiet, std::string_view reply) const noexcept;
  bool is_too_far_ahead() const noexcept;
  bool is_modest() const noexcept;
  void pause_for(Pause reason);
  void wait_for_room(Pause reason = Pause::room);
  void go_on() {
    if (paused()) unpause();
  }
  void unpause();

  Pool& pool_;
  std::unique_ptr<RequestReader> reader_;  // while a request is incomplete
  ClientQueue queue_;
  std::size_t parked_ = 0;  // bytes of replies that wait for their turn, and of fragments
  std::uint64_t id_;
  std::uint32_t expected_;  // how long the next reply may be, by those that came
  std::uint32_t place_;
  SteadyTime last_active_;
  SteadyTime stranger_since_;
  SteadyTime last_write_ = SteadyTime::min();  // no later than that; see has_written_
  SessionState session_state_;
  std::uint32_t reader_bytes_ = 0;          // that reader_ keeps beside the buffer
  std::uint32_t budgeted_ = 0;              // taken of the strangers' budget
  std::unique_ptr<ClientSession> session_;  // made when it is first needed
  ClientState state_;
  front::ReplyMode reply_mode_;
  bool keeps_alive_ = false;
  bool is_mirror_ = false;
  bool stays_ = false;       // the successor does not take it
  bool unanswered_ = false;  // it has sent what has no reply: nobody knows when that is done
  bool has_written_ = true;  // since last_write_; a client that has just come may have, elsewhere
  bool reads_at_replica_ = false;  // of a cluster: something under way may be read there
  bool is_listed_ = false;         // among the clients that the pool tells when there is room
};

}  // namespace sluice::proxy::flow
