/// A client's connection: its requests in the order asked, each served as its Plan says, and their
/// replies in the same order.
#pragma once

#include <memory>
#include <string_view>

#include "proxy/flow/client_figures.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/flow/stream.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class ClientSession;
class Pool;

class Client final : public Stream, public Receiver {
 public:
  Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t number,
         std::size_t place);
  ~Client() override;

  /// At once: what is under way is forgotten.
  void close() noexcept;
  /// After the replies to what is under way.
  void close_later();
  /// When it has nothing under way and has said nothing for a moment: one that asks all the time
  /// would else lose what it asks while the connection ends.
  void drain();
  /// The same, however much it asks; what is under way is answered.
  void drain_now();
  /// Its requests from now on are looked at when those under way are answered: what serves them is
  /// about to change, and they are not to overtake.
  void settle();

  /// Told by the pool, which has struck it off those that wait.
  void there_is_room();
  ClientFigures figures() const;
  /// What is buffered or kept for it, in bytes.
  std::size_t holds() const noexcept { return memory() + parked_; }

  // For its session.
  Pool& pool() const noexcept { return pool_; }
  Variant& variant() noexcept { return variant_; }
  void set_logged_in(bool logged_in) noexcept { logged_in_ = logged_in; }
  bool is_logged_in() const noexcept { return logged_in_; }
  /// In its turn, behind the replies to what is under way.
  void answer(std::string_view reply);
  void answer(Failure failure);
  /// A request in the client's line, whose outcome somebody will give it: replied() or failed().
  Request& line_up(const Plan& plan);
  /// To the server of its keys; refused when they have several.
  void forward(Words words, std::string_view bytes, const Plan& plan);
  /// The server of its keys, or why there is none.
  struct Home {
    Server* server = nullptr;
    Failure failure = Failure::refused;
  };
  Home home_for(Words words, const Plan& plan) const;
  /// Null: the client has been told why.
  Server* home_or_answer(Words words, const Plan& plan);
  void send(Server& home, Words words, std::string_view bytes, const Plan& plan);
  void scatter(Words words, std::string_view bytes, const Plan& plan);
  /// Not more of its requests until the server has taken what waits for it.
  void wait_if_full(const Upstream& upstream);
  /// Its next requests are not looked at until release(), whatever has come.
  void hold();
  void release();
  /// The request that is being served comes again when all before it have been answered.
  void postpone();
  /// Whether there is none before it.
  bool is_next() const noexcept { return line_.empty(); }
  /// Replies to what comes from now on are dropped.
  void set_muted(bool muted) noexcept {
    muted_ = muted;
    skipping_ = 0;
  }
  /// The same for the next request alone.
  void mute_next() noexcept {
    muted_ = true;
    skipping_ = 2;
  }
  using Stream::has_hung_up;
  /// What a server says by itself: written at once, between replies. REQUIRES: nothing is under
  /// way, or RESP3.
  void push(std::string_view bytes) { write(bytes); }
  bool is_closing() const noexcept { return closing_; }

  std::size_t place() const noexcept { return place_; }
  void set_place(std::size_t place) noexcept { place_ = place; }
  std::uint64_t number() const noexcept { return number_; }
  bool is_idle() const noexcept;
  SteadyTime last_active() const noexcept { return last_active_; }

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
  bool may_be_asked_again(const Plan& plan, std::size_t size) const noexcept;
  bool ask_again(Request& request, Failure failure);
  ClientSession& session();
  void last_word(const Plan& plan);
  void overflow();
  void park(Request& request, std::string_view reply);
  /// The head of the line leaves it with its reply.
  void pass_on(std::string_view reply);
  void abandon_line() noexcept;
  void release_answered();
  bool is_silent(Quiet quiet, std::string_view reply) const noexcept;
  bool is_too_far_ahead() const noexcept;
  bool is_beyond_bounds() const noexcept;
  void wait_for_room();
  void wait_for_server();
  void go_on();

  Pool& pool_;
  std::unique_ptr<RequestReader> reader_;  // while a request is incomplete
  ClientLine line_;
  std::size_t parked_ = 0;  // bytes of replies that wait for their turn, and of fragments
  std::size_t expected_;    // how long the next reply may be, by those that came
  std::uint64_t number_;
  std::size_t place_;
  SteadyTime last_active_;
  Variant variant_;
  std::unique_ptr<ClientSession> session_;  // made when it is first needed
  bool logged_in_;
  bool muted_ = false;
  std::uint8_t skipping_ =
      0;  // so many more requests, this one among them, until replies are sent again
  bool postponed_ = false;  // the request in hand
  bool held_ = false;       // by the session
  bool waits_ = false;      // the pool knows that it waits for room
  bool crowded_ = false;    // a server has to take its requests first
  bool overflown_ = false;  // it has left too much lying: what still comes is dropped
  bool closing_ = false;    // after the last reply
  bool draining_ = false;   // as soon as it is idle
  bool settling_ = false;   // see settle()
};

}  // namespace sluice::proxy
