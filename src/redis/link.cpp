// The life of a connection: attempts, the greeting, the loss, and the time in between.
#include "redis/link.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/process.hpp"
#include "net/socket.hpp"
#include "redis/line.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::redis {

namespace {

using namespace std::chrono_literals;

/// While a connection is silent: how often, and how long another one is answered before that is
/// told from chance.
constexpr std::chrono::milliseconds look_again{100};

}  // namespace

Link::Link(const RedisOptions& options, Reactor& reactor, Hearer& hearer, Trackers& trackers,
           Kind kind, std::chrono::milliseconds holds_up)
    : options_(options),
      reactor_(reactor),
      hearer_(hearer),
      trackers_(trackers),
      kind_(kind),
      holds_up_(holds_up),
      server_(describe(options)),
      endpoint_(options.endpoint),
      forks_(fork_count()),
      state_(kind == Kind::shared ? State::waiting : State::idle),
      tls_failed_([this](const Error& why) {
        const Lock lock{mutex_};
        tls_failure_ = why;
      }),
      backoff_(options.backoff_min, options.backoff_max),
      spin_(std::thread::hardware_concurrency() > 1 ? options.spin : std::chrono::microseconds{0}) {
}

Link::~Link() = default;

void Link::wait_for_greeting() {
  Lock lock{mutex_};
  greeted_.wait(lock, [&] { return tried_ || state_ == State::closed; });
  if (connections_ == 0 && last_failure_) throw *last_failure_;
}

bool Link::is_free() {
  const Lock lock{mutex_};
  return state_ != State::closed && flight_.empty() && pending_.empty();
}

Link::Pulse Link::pulse() {
  const Lock lock{mutex_};
  return {state_ == State::ready, !flight_.empty(), last_heard_};
}

void Link::doubt() {
  const auto until =
      Clock::add(Clock::add(system_clock().steady(), options_.command_timeout), holds_up_);
  {
    const Lock lock{mutex_};
    if (!is_open() || flight_.empty() || silent_until_ != SteadyTime::max()) return;
    silent_until_ = until;
    arm();
  }
  reactor_.wake_before(until);
}

void Link::drop(const std::string& why) {
  const Lock lock{mutex_};
  if (is_open()) lose(why);
}

SteadyTime Link::on_tick(SteadyTime now) {
  Finished finished;
  SteadyTime next;
  bool was_lost = false;
  std::string why_lost;
  int waiting = Operation::no_slot;
  {
    Lock lock{mutex_};
    expire(now, finished);
    if (options_.moving) follow_server(now);
    if (now >= look_at_) looks_ = flight_.count(ReadBy::next_reader) > 0;
    if (state_ == State::idle && is_wanted()) state_ = State::waiting;
    if (state_ == State::waiting && is_wanted() && now >= retry_at_) begin_attempt();
    if (state_ == State::connecting && resolution_) take_addresses();
    if (is_attempting() && now >= attempt_ends_)
      lose(fmt::format("{} within {} ms",
                       resolution_ ? "the name service has not answered" : "not connected",
                       attempt_time().count()),
           Errc::timeout);
    if (is_open()) mind_silence(now);
    if (!is_open() || silent_until_ == SteadyTime::max()) leave_second();
    if (is_open() && now >= certificates_at_)
      certificates_at_ = options_.tls->warn_of_ends(server_, *socket_);
    flush(lock);
    arm();
    if (state_ == State::lost && !reading_ && !writing_) {
      dispose_of_socket(finished);
      was_lost = kind_ == Kind::listener || kind_ == Kind::shared;
      if (last_failure_) why_lost = last_failure_->message();
      if (!pending_.empty() && !pending_.front()->redirected) waiting = pending_.front()->slot;
    }
    next = next_tick();
  }
  if (was_lost && kind_ == Kind::listener) trackers_.lost(why_lost);
  if (was_lost) hearer_.lost(kind_ == Kind::listener);
  if (waiting != Operation::no_slot) hearer_.waits(waiting);
  finished.complete_all();
  return next;
}

SteadyTime Link::next_tick() const {
  auto next = std::min(earliest_, silent_until_);
  if (!looks_) next = std::min(next, look_at_);
  if (state_ == State::waiting && is_wanted()) next = std::min(next, retry_at_);
  if (is_attempting()) next = std::min(next, attempt_ends_);
  if (is_open()) next = std::min(next, certificates_at_);
  if (is_open() && hears() && !pinged_)
    next = std::min(next, Clock::add(last_heard_, options_.idle));
  return next;
}

void Link::mind_silence(SteadyTime now) {
  if (now >= silent_until_ && !is_waited_for(now)) {
    lose("it has been silent for too long", Errc::timeout);
  } else if (hears() && !pinged_ && now >= Clock::add(last_heard_, options_.idle)) {
    ping(ReadBy::anybody);
    pinged_ = true;
    silent_until_ = std::min(silent_until_, Clock::add(now, options_.command_timeout));
  }
}

/// A slow server still answers the calls that have more time than the one that has given up. But
/// when it answers a new connection, and this one not, this one is lost.
bool Link::is_waited_for(SteadyTime now) {
  if (kind_ == Kind::listener || !is_open()) return false;
  if (!second_) waits_to_ = appended_;
  if (!has_patient_call()) return false;
  if (!second_) {
    second_ = std::make_shared<Line>(options_, reactor_, Kind::shared);
    reactor_.add(std::shared_ptr<Link>{second_, &second_->link});
  }
  if (is_passed_over(now)) return false;
  silent_until_ = Clock::add(now, look_again);
  return true;
}

/// A call that was under way when the connection had been silent for too long, or whose caller has
/// more time than that.
bool Link::has_patient_call() {
  for (std::size_t i = 0; i < flight_.size(); ++i) {
    const Operation* const one = flight_[i].operation;
    if (one && (one->runs_at <= waits_to_ || one->timeout > options_.command_timeout)) return true;
  }
  return false;
}

/// Others are answered, and here not even a part of a reply comes.
bool Link::is_passed_over(SteadyTime now) {
  const bool is_in_reply = std::exchange(parts_seen_, parts_) != parts_;
  const auto other = second_->link.pulse();
  if (!other.is_ready || is_in_reply || now < other.heard + look_again) return false;
  const auto each = holds_up_ + look_again;
  if (holds_up_.count() > 0 &&
      (now - last_heard_) / each < static_cast<std::int64_t>(flight_.size()))
    return false;
  return !net::is_readable(socket_->descriptor());
}

void Link::leave_second() {
  if (!second_) return;
  second_->link.close();
  reactor_.remove(second_->link);
  second_.reset();
}

std::chrono::milliseconds Link::attempt_time() const {
  const bool is_first = kind_ == Kind::shared && !tried_;
  return is_first ? std::min(options_.connect_timeout, options_.open_timeout)
                  : options_.connect_timeout;
}

/// For messages: which of several servers this connection is to.
std::string Link::at() const {
  return options_.moving ? fmt::format(" (at {})", net::to_string(endpoint_)) : std::string{};
}

/// The server is elsewhere now: what is connected leaves it, though it lives.
void Link::follow_server(SteadyTime now) {
  if (turn_ == options_.moving->turn()) return;
  turn_ = options_.moving->turn();
  if (state_ == State::waiting) retry_at_ = now;
  resolution_ = nullptr;
  if (!is_attempting() && !is_open()) return;
  const bool tried = tried_;
  lose("it is not the master any more");
  tried_ = tried;
  backoff_.reset();
}

/// False: nobody knows where it is. follow_server() is next.
bool Link::find_server() {
  if (!options_.moving) return true;
  const auto place = options_.moving->place();
  turn_ = place.turn;
  if (place.endpoint) endpoint_ = *place.endpoint;
  return place.endpoint.has_value();
}

void Link::begin_attempt() {
  if (!find_server()) {
    retry_at_ = SteadyTime::max();
    return;
  }
  attempt_ends_ = Clock::add(system_clock().steady(), attempt_time());
  state_ = State::connecting;
  if (resolution_) return;  // the name service has not answered the last attempt
  try {
    if (endpoint_.is_unix() || net::is_numeric(endpoint_.host)) {
      addresses_ = net::resolve(endpoint_);
      std::ranges::reverse(addresses_);
      return try_next_address();
    }
    resolution_ = reactor_.resolve(endpoint_);
  } catch (const Error& failure) {
    lose(failure.message(), failure.errc());
  } catch (const std::exception& failure) {  // no thread for the question
    lose(failure.what());
  }
}

/// Of the name service, if it has answered.
void Link::take_addresses() {
  const auto answer = resolution_->answer();
  if (!answer) return;
  resolution_ = nullptr;
  if (!*answer) return lose(answer->error().message(), answer->error().errc());
  addresses_.assign((*answer)->rbegin(), (*answer)->rend());
  try_next_address();
}

const std::string& Link::verified_host() const noexcept {
  return options_.verified_as.empty() ? endpoint_.host : options_.verified_as;
}

void Link::try_next_address() {
  std::string why = "it has no address";
  while (!addresses_.empty()) {
    const auto address = addresses_.back();
    addresses_.pop_back();
    try {
      auto socket = net::Socket::start_connect(address);
      socket_ = options_.tls
                    ? options_.tls->connect(std::move(socket), verified_host(), tls_failed_)
                    : std::make_unique<net::Socket>(std::move(socket));
      reactor_.watch(socket_->descriptor(), *this, EPOLLOUT);
      armed_ = EPOLLOUT;
      return;
    } catch (const Error& error) {
      return lose(error.message(), error.errc());
    } catch (const std::system_error& error) {
      why = error.code().message();
    }
  }
  lose(why);
}

void Link::connected(Lock& lock) {
  if (const int error = net::connect_error(socket_->descriptor()); error != 0) {
    reactor_.forget(socket_->descriptor());
    if (addresses_.empty()) return lose(std::generic_category().message(error));
    return try_next_address();
  }
  if (!options_.tls) return greet(lock);
  state_ = State::securing;
  secure(lock);
}

/// Goes on with the handshake of TLS. The server says nothing else before it is greeted.
void Link::secure(Lock& lock) {
  lock.unlock();  // it computes for a millisecond or more
  const auto transfer = socket_->read_some(buffer_);
  const bool is_done = socket_->is_established();
  const auto wants = socket_->wants_to_read();
  lock.lock();
  if (state_ != State::securing) return;
  if (transfer.outcome == net::Transfer::Outcome::moved)
    return lose("it has sent something before it was asked", Errc::protocol);
  if (transfer.outcome != net::Transfer::Outcome::would_block) return lose(transfer);
  if (is_done) return greet(lock);
  armed_ = (wants.read ? EPOLLIN | EPOLLRDHUP : 0U) | (wants.write ? EPOLLOUT : 0U);
  reactor_.rearm(socket_->descriptor(), *this, armed_);
}

void Link::greet(Lock& lock) {
  const auto before = state_;
  lock.unlock();
  auto channels = kind_ == Kind::listener ? hearer_.confirmed() : std::vector<std::string>{};
  lock.lock();
  if (state_ != before) return;
  resubscribed_ = std::move(channels);
  greeting_.emplace(options_, resubscribed_, kind_ == Kind::durable);
  state_ = State::greeting;
  out_ = greeting_->bytes();
  appended_ = out_.size();
  sent_ = 0;
  flush(lock);
  arm();
}

void Link::take_greeting(const Value& reply) {
  try {
    if (!greeting_->take(reply)) return;
  } catch (const Error& error) {
    return lose(error);
  }
  if (const auto& id = greeting_->node_id(); !id.empty())
    if (const auto why = hearer_.refuse_node(id); !why.empty())
      return lose(Error{Errc::server, fmt::format("{}: {}", server_, why)});
  state_ = State::ready;
  is_of_proxy_.store(greeting_->is_of_proxy(), std::memory_order_relaxed);
  ready_since_ = last_heard_;
  tried_ = true;
  refused_ = greeting_->refused();
  for (const auto& refused : refused_) std::erase(resubscribed_, refused.channel);
  resubscribing_ = !resubscribed_.empty();
  greets_ = kind_ == Kind::listener || kind_ == Kind::shared;
  if (connections_ == 0 && kind_ == Kind::shared && !greeting_->warning().empty())
    log(LogLevel::warning, greeting_->warning());
  if (connections_++ > 0) {
    count(metrics().redis_reconnects);
    reconnecting_ = kind_ == Kind::shared;
    log(LogLevel::info, fmt::format("connected to {}{} again", server_, at()));
  }
  if (options_.tls) certificates_at_ = options_.tls->warn_of_ends(server_, *socket_);
  send_pending();
  greeted_.notify_all();
}

void Link::lose(const std::string& why, Errc code) {
  if (state_ == State::closed || state_ == State::lost) return;
  if (is_open()) {
    log(LogLevel::warning, fmt::format("lost the connection to {}{}: {}", server_, at(), why));
    return lose(Error{code, why});
  }
  lose(Error{code, fmt::format("cannot connect to {}: {}{}", server_, why, guess(code))});
}

/// As the socket says, or TLS around it.
void Link::lose(const net::Transfer& transfer) {
  if (tls_failure_) return lose(tls_failure_->message(), tls_failure_->errc());
  lose(transfer.error == 0 ? "the server closed it"
                           : std::generic_category().message(transfer.error));
}

/// What may be the cause that a first word has no answer.
std::string_view Link::guess(Errc code) const noexcept {
  const bool ended = code == Errc::connection || code == Errc::protocol;
  if (state_ == State::securing && (code == Errc::timeout || code == Errc::connection))
    return "; perhaps this port does not speak TLS: redis:// is without";
  if (state_ == State::greeting && !options_.tls && !greeting_->has_begun() && ended)
    return "; perhaps this port expects TLS: rediss:// is with it";
  return {};
}

/// `failure`: as callers are told of it.
void Link::lose(const Error& failure) {
  last_failure_ = failure;
  if (options_.moving) {
    last_failure_.emplace(failure.errc(), failure.message() + at());
    options_.moving->doubt();
  }
  // A connection that stood for a while was a good one; the next attempt need not be late.
  if (is_open() && system_clock().steady() - ready_since_ >= options_.backoff_max) backoff_.reset();
  // The server will say the same to the next attempt.
  if (failure.errc() == Errc::authentication) backoff_.be_patient();
  note_loss();
}

void Link::note_loss() noexcept {
  state_ = State::lost;
  tried_ = true;
  if (socket_) socket_->shutdown();
  reactor_.wake();
}

/// No byte of this connection is understood any more.
void Link::break_off(const std::exception& failure) noexcept try {
  lose(fmt::format("what it sent was not taken in: {}", failure.what()), Errc::out_of_space);
} catch (const std::exception&) {  // no memory for this sentence either
  note_loss();
}

/// By the reactor's thread, when no thread is inside a read or a write.
void Link::dispose_of_socket(Finished& finished) {
  if (socket_) reactor_.forget(socket_->descriptor());
  socket_.reset();
  tls_failure_.reset();
  refusal_.reset();
  certificates_at_ = SteadyTime::max();
  greeting_.reset();
  parser_.reset();
  settle(finished);
  out_.clear();
  sending_.clear();
  sent_of_sending_ = 0;
  appended_ = sent_ = 0;
  known_.clear();
  armed_ = 0;
  blocked_ = pinged_ = false;
  silent_until_ = SteadyTime::max();
  retry_at_ = system_clock().steady() + backoff_.next();
  state_ = is_wanted() ? State::waiting : State::idle;
  greeted_.notify_all();
}

}  // namespace sluice::redis
