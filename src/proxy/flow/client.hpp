/// A client's connection: its requests in the order asked, each served as its Plan says, and their
/// replies in the same order.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/flow/client_state.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/flow/stream.hpp"
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

class ClientSession;
class Pool;

class Client final : public Stream, public Receiver {
 public:
  /// `place`: its index among the clients of the pool.
  Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t number,
         std::size_t place);
  ~Client() override;

  /// At once: what is under way is forgotten.
  void close() noexcept;
  /// After the replies to what is under way.
  void close_later();
  /// Closes a client that has been quiet for a moment. A busy client stays: while its connection
  /// ended it would send requests, and lose them.
  void drain();
  /// Closes as soon as nothing is under way, also a busy client.
  void drain_now();
  /// What serves its requests is about to change: those under way are answered before the next is
  /// read, so that none overtakes.
  void settle();

  /// Called by the pool, which has taken the client off its list of those that wait.
  void there_is_room();
  ClientFigures figures() const;
  /// What is buffered or kept for it, in bytes.
  std::size_t holds() const noexcept { return memory() + parked_; }

  std::size_t place() const noexcept { return place_; }
  void set_place(std::size_t place) noexcept { place_ = place; }
  std::uint64_t number() const noexcept { return number_; }
  bool is_idle() const noexcept;
  bool is_closing() const noexcept { return state_.is_closing(); }
  SteadyTime last_active() const noexcept { return last_active_; }

  // For its session.
  Pool& pool() const noexcept { return pool_; }
  ConnectionMode& mode() noexcept { return mode_; }
  ReplyMode& reply_mode() noexcept { return reply_mode_; }
  void set_logged_in(bool logged_in) noexcept { logged_in_ = logged_in; }
  bool is_logged_in() const noexcept { return logged_in_; }
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
  /// Null: the client has been told why.
  Server* home_or_answer(Words words, const Plan& plan);
  void send(Server& home, Words words, std::string_view bytes, const Plan& plan);
  /// Reads no more of its requests until the server has taken what waits for it.
  void wait_if_full(const Upstream& upstream);
  /// Its next requests are not read until release().
  void hold() { pause_for(Pause::session); }
  void release();
  /// The request that is being served comes again when all before it have been answered.
  void postpone() { pause_for(Pause::turn); }
  /// Whether no request is before it.
  bool is_next() const noexcept { return queue_.empty(); }
  using Stream::has_hung_up;
  /// What a server says by itself: written at once, between replies. REQUIRES: nothing is under
  /// way, or RESP3.
  void push(std::string_view bytes) { write(bytes); }

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;
  void kept_for(std::ptrdiff_t bytes) override;

 private:
  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_ ? reader_->missing() : 1; }
  void ended(int error) override;
  void flushed() override;
  bool gives_way() override;
  void hung_up() override;

  void serve(Words words, std::string_view bytes);
  void forward(Words words, std::string_view bytes, const Plan& plan);
  void scatter(Words words, std::string_view bytes, const Plan& plan);
  bool is_worth_keeping(const Plan& plan, std::size_t size) const noexcept;
  bool ask_again(Request& request, Failure failure);
  ClientSession& session();
  void last_word(const Plan& plan);
  void overflow();
  void park(Request& request, std::string_view reply);
  void pass_on(std::string_view reply);
  void abandon_queue() noexcept;
  void release_answered();
  bool is_silent(Quiet quiet, std::string_view reply) const noexcept;
  bool is_too_far_ahead() const noexcept;
  bool is_modest() const noexcept;
  void pause_for(Pause reason);
  void wait_for_room(Pause reason = Pause::room);
  void go_on();

  Pool& pool_;
  std::unique_ptr<RequestReader> reader_;  // while a request is incomplete
  ClientQueue queue_;
  std::size_t parked_ = 0;  // bytes of replies that wait for their turn, and of fragments
  std::size_t expected_;    // how long the next reply may be, by those that came
  std::uint64_t number_;
  std::size_t place_;
  SteadyTime last_active_;
  ConnectionMode mode_;
  std::unique_ptr<ClientSession> session_;  // made when it is first needed
  ClientState state_;
  ReplyMode reply_mode_;
  bool logged_in_;
  bool is_listed_ = false;  // among the clients that the pool tells when there is room
};

}  // namespace sluice::proxy::flow
