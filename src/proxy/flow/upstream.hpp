/// One connection to a server, over which the requests of many clients go in one line.
///
/// It connects when there is something to send, and again after it was lost. Replies come in the
/// order of the requests; which reply is whose is known by that order alone, so a connection on
/// which it is in doubt (bytes that are no reply, a reply that nobody asked for) is closed.
///
/// When a request's time is up its receiver has its failure, and the reply that may still come is
/// dropped; the requests behind it keep their own time. A connection that has said nothing for
/// twice the timeout is given up with all that is on it. (Strict: as twemproxy, with the first that
/// is late.)
///
/// Requests wait until the server has accepted the greeting: none is done for another user or in
/// another database than was meant. If it refuses they are answered with its error. (Strict: they
/// follow at once, as in twemproxy.)
#pragma once

#include <memory>
#include <string>

#include "net/endpoint.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/session/script_shelf.hpp"
#include "proxy/flow/stream.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class Server;

/// Who is told what a server says by itself, on a connection that nobody shares.
class Listener {
 public:
  virtual ~Listener() = default;
  /// A push, or a reply that is to nothing in the line (an error).
  virtual void heard(std::string_view message) = 0;
  /// The connection is closed. What a request would have been answered.
  virtual void lost(std::string_view reply) = 0;
};

/// What a connection says before anything else, each answered with something that is no error.
struct Greeting {
  std::string bytes;
  std::uint32_t replies = 0;
  bool is_of_pool =
      true;  ///< nothing in it is a client's choice: that it is refused speaks against the server
};

class Upstream final : public Stream, private Receiver {
 public:
  /// `server` outlives it.
  Upstream(Loop& loop, Server& server, Greeting greeting);
  ~Upstream() override;

  /// The outcome comes by request.receiver, possibly before this returns (when no connection can
  /// even be begun).
  void send(Request& request, std::string_view bytes);
  /// A request that no reply will come to.
  void send_only(std::string_view bytes);
  /// A request whose reply nobody wants.
  void send_aside(std::string_view bytes);

  /// What waits to be written.
  std::size_t unsent() const noexcept { return Stream::unsent() + behind_greeting_.size(); }
  bool idle() const noexcept { return line_.empty() && unsent() == 0; }
  /// It takes its requests so slowly that it should get no more until it has gone on.
  bool is_full() const noexcept { return unsent() + behind_greeting_.size() > full; }
  bool connected() const noexcept { return phase_ == Phase::open; }
  std::size_t under_way() const noexcept { return line_.size(); }
  /// Changes when the connection is lost or closed.
  using Stream::generation;
  /// Whether a request may take as long as it likes; only connecting and the greeting are timed
  /// then. For connections of one client.
  void set_patient(bool patient) noexcept { patient_ = patient; }
  /// Null: nobody listens.
  void listen(Listener* listener) noexcept { listener_ = listener; }
  GivenScripts& scripts() noexcept { return scripts_; }

  /// Where it is connected to, or connecting. Null: nowhere.
  const net::Address* address() const noexcept {
    return phase_ == Phase::open || phase_ == Phase::connecting ? &address_ : nullptr;
  }
  /// Connects if it does not already; failures are only logged and counted.
  void connect();
  /// The addresses that connect() wanted are known; none: there is no such host.
  void resolved();
  /// All that is under way fails.
  void close(Failure failure);

  /// When check_time() has something to do; max(): nothing is under way.
  SteadyTime next_deadline() const noexcept;
  void check_time();

 private:
  static constexpr std::size_t full = std::size_t{4} << 20;

  enum class Phase : std::uint8_t { closed, resolving, connecting, open };

  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_->missing(); }
  void ended(int error) override;
  void writable() override;
  void flushed() override;

  void replied(Request& request, std::string_view reply) override;  // to the greeting
  void failed(Request& request, Failure failure) override;

  void start();
  bool begin_connection();
  void say(std::string_view bytes);
  bool hear(std::string_view message);
  void disconnect() noexcept;
  void turn_away(std::string_view reply);
  bool deliver(std::string_view reply);
  void fail_all(Failure failure);
  template <class Tell>
  void leave(Tell tell);
  void lost(Failure failure, SteadyTime since);
  void time_out_all();
  void time_out_late();
  void refuse_long_reply();

  Server& server_;
  Greeting greeting_;
  std::unique_ptr<ReplyReader> reader_;
  UpstreamLine line_;
  GivenScripts scripts_;
  Listener* listener_ = nullptr;
  std::string behind_greeting_;      // bytes that wait until it is accepted
  std::uint32_t greeting_left_ = 0;  // replies to it that have not come
  bool patient_ = false;
  Phase phase_ = Phase::closed;
  net::Address address_;
  std::size_t tried_ = 0;  // addresses, since it began to connect
  SteadyTime begun_{};     // when the connection was begun
  SteadyTime heard_{};  // when the server last said something, or was last asked after a silence in
                        // which nothing was due
};

}  // namespace sluice::proxy
