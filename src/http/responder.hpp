/// How a handler answers: at once or later, from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "http/response.hpp"

namespace sluice::http {

class Mailbox;
class EventStream;

/// The right to answer one request. Dropped without an answer, it answers 500. If the client or the
/// server has gone meanwhile, nothing happens. Threads: one at a time.
class Responder {
 public:
  Responder(std::shared_ptr<Mailbox> mailbox, std::uint64_t connection,
            std::uint64_t request) noexcept;
  ~Responder();
  Responder(Responder&& other) noexcept = default;
  Responder& operator=(Responder&& other) noexcept {
    std::swap(mailbox_, other.mailbox_);
    std::swap(connection_, other.connection_);
    std::swap(request_, other.request_);
    return *this;
  }

  /// Once. Never blocks.
  void send(Response response);
  /// Stops when the client's connection ends, or its side of it, and when the server begins to
  /// stop: work that only waits is to end then. Stopped from the beginning where that has happened.
  /// Not after the answer. It is requested in the thread of the loop, as a handler runs. Once,
  /// before the answer.
  std::stop_token gone();
  /// Answers with an event stream; the connection serves nothing else from then on. Once.
  EventStream stream();

  /// For a handler, in its loop's thread: `call` is called once, when all requests that are here
  /// were handed out and before their answers are written. What they ask of a store can so travel
  /// together. REQUIRES: not answered yet.
  void at_end_of_turn(std::function<void()> call);

 private:
  std::shared_ptr<Mailbox> mailbox_;  // null: answered, or moved from
  std::uint64_t connection_;
  std::uint64_t request_;
};

/// One event of a stream (Server-Sent Events). Lines of `data` become lines of the stream.
struct StreamEvent {
  std::string id;     ///< what a client that comes back says in Last-Event-ID; no line end
  std::string event;  ///< its type; empty: "message"
  std::string data;
};

/// Events to one client. A client that does not read as fast as they come is dropped: it comes back
/// with the Last-Event-ID that it has. It ends when this object does. Threads: one at a time.
class EventStream {
 public:
  struct State;

  explicit EventStream(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  ~EventStream();
  EventStream(EventStream&&) noexcept = default;
  EventStream& operator=(EventStream&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }

  /// False: the client has gone, was dropped, or the server stops. Never blocks. True does not mean
  /// that the client has it. Throws Error{bad_argument} for an id or type with a line end.
  bool send(const StreamEvent& event);
  /// Asks the client to wait so long before it comes back, when it is cut off.
  void pause_before_return(std::chrono::milliseconds pause);
  bool is_open() const noexcept;

 private:
  std::shared_ptr<State> state_;  // null: moved from
};

}  // namespace sluice::http
