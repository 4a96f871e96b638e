/// One connection to a server, over which the requests of many clients go in one line.
///
/// It connects when there is something to send, and again after it was lost. Replies come in the order of the
/// requests; which reply is whose is known by that order alone, so a connection on which it is in doubt (bytes that are no
/// reply, a reply that nobody asked for) is closed.
///
/// When a request's time is up its receiver has its failure, and the reply that may still come is dropped; the requests behind it
/// keep their own time. A connection that has said nothing for twice the timeout is given up with all that is on
/// it. (Strict: as twemproxy, with the first that is late.)
#pragma once

#include <memory>
#include <string>

#include "proxy/flow/request.hpp"
#include "proxy/flow/stream.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class Server;

/// What a connection says before anything else, each answered with something that is no error.
struct Greeting {
  std::string bytes;
  std::uint32_t replies = 0;
};

class Upstream final : public Stream, private Receiver {
 public:
  /// `server` outlives it.
  Upstream(Loop& loop, Server& server, Greeting greeting);
  ~Upstream() override;

  /// The outcome comes by request.receiver, possibly before this returns (when no connection can even be begun).
  void send(Request& request, std::string_view bytes);
  /// A request that no reply will come to.
  void send_only(std::string_view bytes);

  bool idle() const noexcept { return line_.empty() && unsent() == 0; }
  /// It takes its requests so slowly that it should get no more until it has gone on.
  bool is_full() const noexcept { return unsent() > full; }
  bool connected() const noexcept { return phase_ == Phase::open; }
  std::size_t under_way() const noexcept { return line_.size(); }

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
  bool deliver(std::string_view reply);
  void fail_all(Failure failure);
  void lost(Failure failure, SteadyTime since);
  void time_out_all();
  void time_out_late();
  void refuse_long_reply();

  Server& server_;
  Greeting greeting_;
  std::unique_ptr<ReplyReader> reader_;
  UpstreamLine line_;
  Phase phase_ = Phase::closed;
  SteadyTime begun_{};  // when the connection was begun
  SteadyTime
      heard_{};  // when the server last said something, or was last asked after a silence in which nothing was due
};

}  // namespace sluice::proxy
