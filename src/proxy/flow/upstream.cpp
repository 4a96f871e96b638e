#include "proxy/flow/upstream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "net/socket.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/server.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

Failure failure_of(int error) noexcept {
  switch (error) {
    case 0: return Failure::closed;
    case ECONNREFUSED:
    case ENOENT: return Failure::refused;
    case ETIMEDOUT: return Failure::timed_out;
    case EINVAL:
    case EPROTO: return Failure::invalid;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:  // of epoll
    case EADDRNOTAVAIL: return Failure::overloaded;
    default: return Failure::reset;
  }
}

/// When a connection that cannot even be begun counts as begun: just before this turn, so that of
/// several in one turn the first alone counts as a failure of the server.
SteadyTime before(SteadyTime now) noexcept { return now - SteadyTime::duration{1}; }

}  // namespace

Upstream::Upstream(loop::Loop& loop, Server& server, Handshake handshake, Lane lane)
    : loop::Stream(loop),
      server_(server),
      lane_(lane),
      handshake_(std::move(handshake)),
      reader_(server.pool().protocol().reply_reader()),
      kept_(loop.blocks()),
      behind_handshake_(loop.blocks()) {}

Upstream::~Upstream() {
  while (!queue_.empty())
    server_.pool().requests().drop(queue_.pop());  // close() has told their receivers
}

void Upstream::send(Request& request, std::string_view bytes) {
  const bool is_on_detour = request.hops != 0 || request.pauses != 0;
  if (!is_on_detour) request.since = loop_.now();
  request.size = static_cast<std::uint32_t>(bytes.size());
  if (request.detours) keep(request, bytes);
  if (queue_.empty()) {
    heard_ = loop_.now();
    server_.pool().servers().expect_deadline();
  }
  if (phase_ == Phase::closed) start();
  queue_.push(request);
  server_.counters().out_queue.add();
  server_.counters().out_queue_bytes.add(request.size);
  if (untimed_) request.expected = 0;  // its reply may never come
  loop_.blocks().expect(request.expected);
  say(bytes);
}

/// What has a body, has its bytes there.
void Upstream::keep(Request& request, std::string_view bytes) {
  if (request.body || bytes.size() > Detours::most_kept) return;
  kept_.append(bytes);
  request.kept = true;
}

/// REQUIRES: no request before it is in the queue.
void Upstream::take_kept(Request& request, bool is_wanted) {
  if (!std::exchange(request.kept, false)) return;
  if (is_wanted) request.body = std::make_unique<std::string>(kept_.view().substr(0, request.size));
  kept_.drop(request.size);
}

std::chrono::nanoseconds Upstream::silence() const noexcept {
  return queue_.empty() ? std::chrono::nanoseconds{0} : loop_.now() - heard_;
}

void Upstream::send_only(std::string_view bytes) {
  if (phase_ == Phase::closed) start();
  say(bytes);
}

void Upstream::send_aside(std::string_view bytes) {
  send(server_.pool().requests().make(), bytes);  // without a receiver
}

void Upstream::say(std::string_view bytes) {
  if (handshake_left_ != 0 && !server_.pool().is_strict())
    append(behind_handshake_, bytes);
  else
    write(bytes);
  if (unsent() > most_unsent) set_full(true);
  server_.counters().requests.add();
  server_.counters().request_bytes.add(static_cast<std::int64_t>(bytes.size()));
  check_begun();
}

void Upstream::connect() {
  if (phase_ == Phase::closed) start();
  check_begun();
}

/// Behind start(), when what needs the connection is in the queue.
void Upstream::check_begun() {
  if (phase_ == Phase::closed) lost(begin_failure_, before(loop_.now()));
}

/// Leaves the phase `closed` when no connection can even be begun.
void Upstream::start() {
  begun_ = heard_ = loop_.now();
  server_.pool().servers().expect_connection();
  shake_hands(handshake_);
  tried_ = 0;
  if (server_.addresses().empty()) {
    phase_ = Phase::resolving;
    server_.resolve(this);
    return;
  }
  static_cast<void>(begin_connection());
}

void Upstream::shake_hands(const Handshake& handshake) {
  write(handshake.bytes);
  handshake_left_ = handshake.replies;
  if (handshake.replies != 0) server_.pool().servers().expect_deadline();
  for (std::uint32_t i = 0; i < handshake.replies; ++i) {
    Request& request = server_.pool().requests().make();
    request.receiver = this;
    request.since = loop_.now();
    request.size = 0;
    queue_.push(request);
    server_.counters().out_queue.add();
  }
}

void Upstream::adopt(Handshake handshake, const Handshake& change) {
  handshake_ = std::move(handshake);
  if (phase_ != Phase::open) return close(Failure::reset);
  if (queue_.empty()) heard_ = loop_.now();
  shake_hands(change);
}

bool Upstream::take_descriptor() noexcept {
  if (!has_descriptor_) has_descriptor_ = server_.pool().context().limits.descriptors.enter();
  return has_descriptor_;
}

/// With the first of the addresses not yet tried to which one can be begun. False: to none.
bool Upstream::begin_connection() {
  begin_failure_ = take_descriptor() ? Failure::refused : Failure::overloaded;
  while (has_descriptor_ && tried_ < server_.addresses().size()) {
    ++tried_;
    address_ = server_.addresses().current();
    try {
      replace(server_.pool().connect(server_));
      if (phase_ != Phase::connecting) server_.counters().server_connections.add();
      phase_ = Phase::connecting;
      return true;
    } catch (const std::system_error& error) {
      begin_failure_ = failure_of(error.code().value());
      if (server_.may_tell())
        log(LogLevel::warning, fmt::format("connecting to server '{}' failed: {}",
                                           server_.settings().name, error.code().message()));
    }
    server_.skip(address_);
  }
  return false;
}

void Upstream::resolved() {
  if (phase_ != Phase::resolving) return;
  if (server_.addresses().empty()) return lost(Failure::host_down, begun_);
  if (!begin_connection()) lost(begin_failure_, begun_);
}

void Upstream::writable() {
  if (phase_ != Phase::connecting) return;
  if (const int error = net::connect_error(descriptor()); error != 0) return ended(error);
  phase_ = Phase::open;
  server_.note_back();
}

void Upstream::flushed() {
  if (!is_full_ || unsent() != 0) return;
  set_full(false);
  server_.pool().clients().there_is_room();
}

void Upstream::set_full(bool full) noexcept {
  if (std::exchange(is_full_, full) != full) server_.pool().servers().note_full(full ? 1 : -1);
}

std::size_t Upstream::consume(std::string_view bytes) {
  heard_ = loop_.now();
  std::size_t used = 0;
  while (used < bytes.size()) {
    const auto rest = bytes.substr(used);
    const auto state = reader_->read(rest);
    if (state == ReplyReader::State::incomplete) break;
    if (state == ReplyReader::State::bad && reader_->is_too_long() && !queue_.empty()) {
      refuse_long_reply();
      return 0;
    }
    const bool unasked = reader_->is_push() || (queue_.empty() && push_receiver_ != nullptr);
    if (state == ReplyReader::State::bad || (queue_.empty() && !unasked)) {
      log(LogLevel::error,
          fmt::format("server '{}' sent what is no reply to anything; its connection is closed",
                      server_.settings().name));
      ended(EPROTO);
      return 0;
    }
    used += reader_->size();
    const auto message = rest.substr(0, reader_->size());
    if (!(unasked ? push(message) : deliver(message))) return 0;
  }
  return used;
}

/// False: the connection was closed over it.
bool Upstream::push(std::string_view message) {
  const auto before = generation();
  if (push_receiver_) push_receiver_->pushed(message);
  return before == generation();
}

/// The first request of the queue, which leaves it: its reply is here, or will not come.
Request& Upstream::take_from(UpstreamQueue& queue) noexcept {
  Request& request = queue.pop();
  server_.counters().out_queue.add(-1);
  server_.counters().out_queue_bytes.add(-static_cast<std::int64_t>(request.size));
  loop_.blocks().expect(-static_cast<std::int64_t>(request.expected));
  return request;
}

/// False: the connection was closed over it.
bool Upstream::deliver(std::string_view reply) {
  const auto before = generation();
  Request& request = take_from(queue_);
  const bool is_refused = request.detours && reply.front() == '-' && request.receiver &&
                          server_.pool().detours().takes(reply);
  if (request.kept) take_kept(request, is_refused);
  auto& counters = server_.counters();
  if (request.receiver != this) {
    counters.responses.add();
    counters.response_bytes.add(static_cast<std::int64_t>(reply.size()));
  }
  auto& pool = server_.pool();
  const bool is_trouble = reply.front() == '-' && pool.protocol().is_server_trouble(reply);
  if (is_trouble && pool.is_strict()) {
    fail(request, Failure::invalid);
    lost(Failure::invalid, loop_.now());
    return false;
  }
  // "Not now", or an error to the handshake, is no sign of health.
  if (reply.front() != '-' || (request.receiver != this && !is_trouble))
    server_.health().succeeded();
  if (is_refused && pool.detours().refused(request, *this, reply)) [[unlikely]] {
    // It goes on.
  } else if (request.receiver) {
    pool.observe(server_, request, reply, untimed_);
    request.receiver->replied(request, reply);
  } else {
    if (request.abandoned) counters.late_replies.add();
    server_.pool().requests().drop(request);
  }
  return before == generation();
}

void Upstream::ended(int error) {
  if (phase_ == Phase::connecting && error != 0) {
    server_.skip(address_);
    if (begin_connection()) return;
  }
  auto& counters = server_.counters();
  if (error == 0)
    counters.server_eof.add();
  else if (error == ETIMEDOUT)
    counters.server_timedout.add();
  else
    counters.server_err.add();
  const bool was_idle = queue_.empty() && phase_ == Phase::open && error != EPROTO;
  if (was_idle && !server_.pool().is_strict()) {
    server_.note_lost();
    return close(Failure::closed);  // nothing was under way: no failure
  }
  lost(failure_of(error), heard_);
}

/// Fails the request that it answers, and those behind it, whose replies cannot be reached. It is
/// no failure of the server.
void Upstream::refuse_long_reply() {
  log(LogLevel::error,
      fmt::format("server '{}' sent a reply beyond reply_size_limit; its connection is closed",
                  server_.settings().name));
  server_.counters().server_err.add();
  Request& request = take_from(queue_);
  take_kept(request, false);
  fail(request, Failure::too_long);
  close(Failure::reset);
}

/// Closes, and counts it as a failure of the server that began at `since`.
void Upstream::lost(Failure failure, SteadyTime since) {
  if (server_.may_tell())
    log(LogLevel::warning,
        fmt::format("server '{}': connection lost with {} requests under way: {}",
                    server_.settings().name, queue_.size(), text_of(failure)));
  server_.weigh_failure(since, failure);
  if (phase_ == Phase::connecting) server_.skip(address_);
  server_.look_again();
  server_.note_lost();
  close(failure);
}

void Upstream::close(Failure failure) {
  const bool was_written = phase_ == Phase::open && is_established() && handshake_left_ == 0;
  const bool may_be_unsent =
      !was_written && server_.pool().settings().is_of_cluster() && failure != Failure::overloaded;
  close_with(server_.pool().protocol().reply_for(failure), [=, this](Request& request) {
    const bool is_unsent = may_be_unsent && request.detours && request.receiver;
    if (!is_unsent || !server_.pool().detours().unsent(request, *this, failure))
      fail(request, failure);
  });
}

/// `reply` goes to the receiver of pushes; `end` gives each request its outcome.
template <class End>
void Upstream::close_with(const std::string& reply, End end) {
  disconnect();
  if (auto* const receiver = std::exchange(push_receiver_, nullptr)) receiver->lost(reply);
  auto queue = std::exchange(queue_, {});  // receivers may send again at once
  for (Request* request = queue.head(); request; request = request->behind)
    if (request->kept) take_kept(*request, request->receiver != nullptr);
  while (!queue.empty()) end(take_from(queue));
  server_.pool().clients().there_is_room();
}

void Upstream::fail(Request& request, Failure failure) {
  if (request.receiver)
    request.receiver->failed(request, failure);
  else
    server_.pool().requests().drop(request);
}

void Upstream::disconnect() noexcept {
  if (phase_ == Phase::connecting || phase_ == Phase::open)
    server_.counters().server_connections.add(-1);
  if (phase_ == Phase::resolving) server_.forget(*this);
  if (std::exchange(has_descriptor_, false)) server_.pool().context().limits.descriptors.leave();
  phase_ = Phase::closed;
  detach();
  behind_handshake_.release();
  set_full(false);
  handshake_left_ = 0;
  reader_ = server_.pool().protocol().reply_reader();
}

/// Up to the end of the TLS handshake.
bool Upstream::is_connecting() const noexcept {
  return phase_ == Phase::open ? !is_established() : phase_ != Phase::closed;
}

SteadyTime Upstream::next_deadline() const noexcept {
  const auto& settings = server_.pool().settings();
  const auto connected_by = is_connecting() && !server_.pool().is_strict()
                                ? begun_ + settings.connect_timeout
                                : SteadyTime::max();
  if (!settings.timeout || queue_.empty() || (untimed_ && handshake_left_ == 0))
    return connected_by;
  for (const Request* request = queue_.head(); request; request = request->behind)
    if (!request->abandoned) return std::min(connected_by, request->since + *settings.timeout);
  return std::min(connected_by, heard_ + 2 * *settings.timeout);
}

void Upstream::check_time() {
  const auto& settings = server_.pool().settings();
  const auto now = loop_.now();
  const bool connecting = is_connecting();
  if (connecting && !server_.pool().is_strict() && now >= begun_ + settings.connect_timeout)
    return time_out_all();
  if (!settings.timeout || queue_.empty() || (untimed_ && handshake_left_ == 0)) return;
  if (server_.pool().is_strict() || connecting || handshake_left_ != 0) {
    if (now >= queue_.head()->since + *settings.timeout) time_out_all();
  } else if (queue_.head()->abandoned && now >= heard_ + 2 * *settings.timeout) {
    time_out_all();
  } else {
    time_out_late();
  }
}

void Upstream::time_out_all() {
  server_.counters().server_timedout.add();
  lost(Failure::timed_out, queue_.empty() ? begun_ : queue_.head()->since);
}

/// Each request that has timed out leaves a stand-in in the queue, whose reply will be dropped.
void Upstream::time_out_late() {
  const auto latest = loop_.now() - *server_.pool().settings().timeout;
  const auto connection = generation();
  Request* before = nullptr;
  for (Request* request = queue_.head(); request && request->since <= latest;
       request = before->behind) {
    if (request->abandoned) {
      before = request;
      continue;
    }
    Request& stand_in = server_.pool().requests().make();
    stand_in.abandoned = true;
    stand_in.since = request->since;
    stand_in.size = request->size;
    stand_in.expected = request->expected;
    stand_in.kept = std::exchange(request->kept, false);
    queue_.replace(before, *request, stand_in);
    before = &stand_in;
    server_.counters().server_timedout.add();
    server_.weigh_failure(request->since, Failure::timed_out);
    fail(*request, Failure::timed_out);
    if (connection != generation()) return;  // its receiver has closed it
  }
}

void Upstream::replied(Request& request, std::string_view reply) {
  server_.pool().requests().drop(request);
  if (phase_ == Phase::closed) return;
  if (reply.front() == '-') {
    const auto line_end = reply.find('\r');
    log(LogLevel::error,
        fmt::format("server '{}' refuses the handshake: {}", server_.settings().name,
                    reply.substr(1, line_end == reply.npos ? reply.npos : line_end - 1)));
  }
  if (!server_.pool().protocol().is_welcome(reply)) {
    turn_away(reply);
  } else if (handshake_left_ != 0 && --handshake_left_ == 0 && !behind_handshake_.empty()) {
    write(behind_handshake_);
  }
}

/// Closes; the server's error answers what waits.
void Upstream::turn_away(std::string_view reply) {
  if (handshake_.is_of_pool) server_.weigh_failure(begun_, Failure::invalid);
  const std::string error{reply};  // not of the buffer, which goes
  close_with(error, [&](Request& request) {
    if (request.receiver)
      request.receiver->replied(request, error);
    else
      server_.pool().requests().drop(request);
  });
}

void Upstream::failed(Request& request, Failure) { server_.pool().requests().drop(request); }

}  // namespace sluice::proxy::flow
