/// A client's connection: its requests in the order asked, each served as its Plan says, and their replies in the same
/// order.
#pragma once

#include <memory>
#include <string_view>

#include "proxy/flow/request.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/flow/stream.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class Pool;

class Client final : public Stream, public Receiver {
 public:
  Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t number,
         std::size_t place);
  ~Client() override = default;

  /// At once: what is under way is forgotten.
  void close() noexcept;
  /// After the replies to what is under way.
  void close_later();
  /// When it has nothing under way and nothing more has come from it.
  void drain();

  void there_is_room();

  std::size_t place() const noexcept { return place_; }
  void set_place(std::size_t place) noexcept { place_ = place; }
  std::uint64_t number() const noexcept { return number_; }
  bool is_idle() const noexcept { return line_.empty() && unsent() == 0; }
  SteadyTime last_active() const noexcept { return last_active_; }

 private:
  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_ ? reader_->missing() : 1; }
  void ended(int error) override;
  void flushed() override;

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;

  void serve(Words words, std::string_view bytes);
  void forward(Words words, std::string_view bytes, const Plan& plan);
  void scatter(Words words, std::string_view bytes, const Plan& plan);
  void send(Server& home, Words words, std::string_view bytes, const Plan& plan);
  void answer(std::string_view reply);
  void answer(Failure failure);
  void last_word(const Plan& plan);
  Request& line_up(const Plan& plan);
  void release_answered();
  bool is_too_far_ahead() const noexcept;
  void hold_if_too_far_ahead();

  Pool& pool_;
  std::unique_ptr<RequestReader> reader_;  // while a request is incomplete
  ClientLine line_;
  std::uint64_t number_;
  std::size_t place_;
  SteadyTime last_active_;
  Variant variant_;
  bool closing_ = false;   // after the last reply
  bool draining_ = false;  // as soon as it is idle
};

}  // namespace sluice::proxy
