/// One connection to the server, and its coming back after it was lost.
///
/// Sending: a request is appended to `out_` under the lock. A thread that finds no other thread
/// sending sends until `out_` is empty, so what gathers during one write travels in the next.
/// Receiving: one thread at a time reads, takes the replies to the operations at the front of
/// `flight_`, and completes them when it has let the lock go. That thread is a caller that waits
/// for a reply (drive()); when it has its own it wakes another waiting caller to read. While no
/// caller reads, the reactor's thread does, if something may come (needs_reactor_to_read()).
///
///     idle ─> waiting ─> connecting ─> securing ─> greeting ─> ready ─> draining ┐
///               ^            |             |           |         |               |
///               └────────────┴── failed ───┴───────────┘         └──── lost <────┘   closed: from
///               all
///
/// `securing`: the handshake of TLS, by the reactor's thread; without TLS there is none.
///
/// `lost`: the socket is shut down; the reactor's thread disposes of it as soon as no thread is
/// inside a read or write.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "net/transport.hpp"
#include "redis/channels.hpp"
#include "redis/greeting.hpp"
#include "redis/in_flight.hpp"
#include "redis/moving_endpoint.hpp"
#include "redis/operation.hpp"
#include "redis/reactor.hpp"
#include "redis/resolution.hpp"
#include "redis/spin.hpp"
#include "redis/trackers.hpp"
#include "resp/reply_parser.hpp"

namespace sluice::redis {

struct Line;

class Link final : public Source, public Driver {
 public:
  enum class Kind {
    shared,    ///< always kept connected
    listener,  ///< hears the channels: a server closes what has subscribed for a large reply
    lent,      ///< for blocking commands: connected only while there is something to send
    durable,   ///< for what replicas have to have; connected as `lent`
  };

  /// `holds_up`: a request here may hold up the later ones for so long, though the server lives.
  Link(const RedisOptions& options, Reactor& reactor, Hearer& hearer, Trackers& trackers, Kind kind,
       std::chrono::milliseconds holds_up = {});
  ~Link() override;

  /// Takes an operation; it will be completed, perhaps before this returns.
  void submit(Operation& operation);
  /// Blocks until the first connection is there. Throws the Error of the first attempt.
  void wait_for_greeting();
  /// Before close(): waits up to `most` for replies to calls that were sent, and reads what is
  /// there.
  enum class Last { none_awaited, none_came, read };
  Last read_last(std::chrono::milliseconds most);
  /// Every operation under way fails with Errc::closed; new ones too.
  void close();
  /// No call is under way, not even one that its caller has given up.
  bool is_free();
  /// It was by its last greeting.
  bool is_of_proxy() const noexcept { return is_of_proxy_.load(std::memory_order_relaxed); }

  /// Gives back the calls that wait for a connection and whose slot is another node's now, in their
  /// order.
  void return_calls(const std::function<bool(const Operation&)>& is_elsewhere);
  /// Connects anew, though the server has not closed.
  void drop(const std::string& why);
  /// A caller has given up whose call waits here, or behind one that does.
  void doubt();
  struct Pulse {
    bool is_ready;     ///< connected and greeted
    bool awaits;       ///< replies
    SteadyTime heard;  ///< when the last bytes came
  };
  Pulse pulse();

  void drive(Waiter& waiter) override;
  void on_ready(std::uint32_t events) override;
  SteadyTime on_tick(SteadyTime now) override;

 private:
  enum class State { idle, waiting, connecting, securing, greeting, ready, draining, lost, closed };
  using Lock = std::unique_lock<std::mutex>;

  // link_calls.cpp: calls and their ends
  std::exception_ptr accept(Operation& operation);
  void take(Operation& operation);
  void append(Operation& operation);
  void teach(const Operation& operation);
  std::exception_ptr refusal(const Operation& operation) const;
  std::string why_unconnected() const;
  void ping(ReadBy reader);
  void hear_first(Lock& lock);
  void drop_front();
  bool awaits_last_replies() const noexcept;
  bool is_unsent(const Operation& operation) const noexcept;
  static bool may_repeat(const Operation& operation) noexcept;
  bool may_have_run(const Operation& operation, bool in_flight) const noexcept;
  void expire(SteadyTime now, Finished& finished);
  void refuse_reply(const std::string& why, Finished& finished);
  void refuse_surplus();
  void settle(Finished& finished);
  void send_pending();

  // link_wire.cpp: bytes
  void flush(Lock& lock);
  bool receive(Waiter& waiter);
  bool sleep(Waiter& waiter);
  net::Transfer spin(const Waiter& waiter, SteadyTime end);
  bool digest(net::Transfer transfer);
  bool take_in(net::Transfer transfer);
  void take_all(const std::optional<std::string>& nonsense);
  void deliver(Value& push);
  void note_subscription(const Value& push, bool is_answer);
  void note_state_of_server(const Value& error, const Request* request);
  bool is_digesting_here() const noexcept;
  void take_one(Value& value, Finished& finished);
  void answer(Value& reply, Finished& finished);
  bool waits_for_master(Operation& operation);
  bool needs_reactor_to_read() const noexcept;
  void arm() noexcept;
  void stop_reading();
  void follow(Waiter& waiter, Lock& lock);

  // link.cpp: life
  bool is_open() const noexcept { return state_ == State::ready || state_ == State::draining; }
  bool is_wired() const noexcept { return is_open() || state_ == State::greeting; }
  bool is_attempting() const noexcept {
    return state_ == State::connecting || state_ == State::securing || state_ == State::greeting;
  }
  bool hears() const noexcept {
    return kind_ == Kind::listener && (hearer_.any() || trackers_.any());
  }
  bool is_wanted() const noexcept { return kind_ == Kind::shared || hears() || !pending_.empty(); }
  std::chrono::milliseconds attempt_time() const;
  std::string at() const;
  void follow_server(SteadyTime now);
  bool find_server();
  void begin_attempt();
  void take_addresses();
  const std::string& verified_host() const noexcept;
  void try_next_address();
  void connected(Lock& lock);
  void secure(Lock& lock);
  void greet(Lock& lock);
  std::string_view guess(Errc code) const noexcept;
  void take_greeting(const Value& reply);
  void lose(const std::string& why, Errc code = Errc::connection);
  void lose(const net::Transfer& transfer);
  void lose(const Error& failure);
  void note_loss() noexcept;
  void break_off(const std::exception& failure) noexcept;
  void dispose_of_socket(Finished& finished);
  void mind_silence(SteadyTime now);
  bool is_waited_for(SteadyTime now);
  bool has_patient_call();
  bool is_passed_over(SteadyTime now);
  void leave_second();
  SteadyTime next_tick() const;

  const RedisOptions& options_;
  Reactor& reactor_;
  Hearer& hearer_;
  Trackers& trackers_;
  const Kind kind_;
  const std::chrono::milliseconds holds_up_;
  const std::string server_;
  net::Endpoint endpoint_;  // where it is, as this attempt or connection knows it
  std::uint64_t turn_ = 0;  // of MovingEndpoint, when that was asked
  const unsigned forks_;

  std::mutex mutex_;
  std::condition_variable greeted_;
  State state_ = State::idle;
  bool reading_ = false;            // a thread has the role of the reader
  std::vector<Waiter*> followers_;  // callers that sleep because another thread reads
  bool writing_ = false;            // ... of the writer
  bool blocked_ = false;            // the socket takes no more for now
  std::uint32_t armed_ = 0;         // what the reactor watches for
  const net::TlsFailure tls_failed_;
  std::optional<Error> tls_failure_;      // of this connection
  std::optional<net::Transfer> refusal_;  // a write that the peer took no more
  std::unique_ptr<net::Transport> socket_;
  SteadyTime certificates_at_ = SteadyTime::max();  // one of them is near its end
  std::shared_ptr<Resolution> resolution_;          // under way; it may outlast its attempt
  std::vector<net::Address> addresses_;             // still to be tried in this attempt, last first
  std::optional<Greeting> greeting_;
  std::vector<std::string> resubscribed_;
  std::vector<Greeting::Refused> refused_;  // have yet to be told
  bool resubscribing_ = false;              // the gap has yet to be told
  bool reconnecting_ = false;               // and that it is connected again
  bool greets_ = false;  // its hearer and trackers have yet to be told of the connection
  std::optional<Error> last_failure_;
  bool tried_ = false;             // the first attempt has ended
  std::uint64_t connections_ = 0;  // that reached ready
  std::atomic<bool> is_of_proxy_{false};
  Backoff backoff_;
  SteadyTime retry_at_{};
  SteadyTime attempt_ends_{};
  SteadyTime ready_since_{};
  SteadyTime last_heard_{};
  SteadyTime silent_until_ =
      SteadyTime::max();          // a call timed out: answer one in time by then, or connect anew
  std::shared_ptr<Line> second_;  // while it is silent: whether others are answered
  std::uint64_t waits_to_ = 0;    // bytes: what was sent up to here when that began, is waited for
  std::uint64_t parts_ = 0;       // of replies; how often some came, and no end
  std::uint64_t parts_seen_ = 0;
  bool pinged_ = false;

  std::string out_;      // to be sent next
  std::string sending_;  // the writer's
  std::size_t sent_of_sending_ = 0;
  std::uint64_t appended_ = 0;  // bytes given to this connection
  std::uint64_t sent_ = 0;      // bytes the kernel took
  KnownScripts known_;
  InFlight flight_;
  std::deque<Operation*> pending_;  // waiting for a connection
  std::size_t pending_bytes_ = 0;
  SteadyTime earliest_ = SteadyTime::max();  // no deadline is before
  SteadyTime look_at_ = SteadyTime::max();   // for replies to unhurried calls
  bool looks_ = false;                       // that time has come

  // The reader's.
  AdaptiveSpin spin_;
  resp::ReplyParser parser_;
  std::vector<Value> inbox_;
  struct Subscribed {
    Hearer::Kind kind;
    bool is_end;
    std::string channel;
  };
  std::vector<Subscribed> subscribed_;
  std::array<char, 64 * 1024> buffer_;
  static_assert(sizeof buffer_ >= net::Transport::whole_read);
};

}  // namespace sluice::redis
