#include "proxy/flow/upstream.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "net/socket.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/server.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

Failure failure_of(int error) noexcept {
  switch (error) {
    case 0: return Failure::closed;
    case ECONNREFUSED:
    case ENOENT: return Failure::refused;
    case ETIMEDOUT: return Failure::timed_out;
    case EINVAL:
    case EPROTO: return Failure::invalid;
    default: return Failure::reset;
  }
}

/// When a connection that cannot even be begun counts as begun: of those of one turn the first
/// tells all.
SteadyTime before(SteadyTime now) noexcept { return now - SteadyTime::duration{1}; }

int pending_error(int descriptor) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Upstream::Upstream(Loop& loop, Server& server, Greeting greeting)
    : Stream(loop),
      server_(server),
      greeting_(std::move(greeting)),
      reader_(server.pool().protocol().reply_reader()) {}

Upstream::~Upstream() {
  while (!line_.empty())
    loop_.requests().drop(line_.pop());  // REQUIRES: close() was called, nobody waits for these
}

void Upstream::send(Request& request, std::string_view bytes) {
  request.since = loop_.now();
  request.size = static_cast<std::uint32_t>(bytes.size());
  if (line_.empty()) {
    heard_ = loop_.now();
    server_.pool().expect_deadline();
  }
  if (phase_ == Phase::closed) start();
  line_.push(request);
  say(bytes);
  auto& counters = server_.counters();
  counters.requests.add();
  counters.request_bytes.add(static_cast<std::int64_t>(bytes.size()));
  counters.out_queue.add();
  counters.out_queue_bytes.add(static_cast<std::int64_t>(bytes.size()));
  if (phase_ == Phase::closed) lost(Failure::refused, before(loop_.now()));
}

void Upstream::send_only(std::string_view bytes) {
  if (phase_ == Phase::closed) start();
  say(bytes);
  server_.counters().requests.add();
  server_.counters().request_bytes.add(static_cast<std::int64_t>(bytes.size()));
  if (phase_ == Phase::closed) lost(Failure::refused, before(loop_.now()));
}

void Upstream::send_aside(std::string_view bytes) {
  send(loop_.requests().make(), bytes);  // without a receiver
}

void Upstream::say(std::string_view bytes) {
  if (greeting_left_ != 0 && !server_.pool().is_strict())
    behind_greeting_.append(bytes);
  else
    write(bytes);
}

void Upstream::connect() {
  if (phase_ == Phase::closed) start();
  if (phase_ == Phase::closed) lost(Failure::refused, before(loop_.now()));
}

/// Leaves the phase `closed` when not even the beginning of a connection can be made.
void Upstream::start() {
  begun_ = heard_ = loop_.now();
  server_.pool().expect_connection();
  write(greeting_.bytes);
  greeting_left_ = greeting_.replies;
  if (greeting_.replies != 0) server_.pool().expect_deadline();
  for (std::uint32_t i = 0; i < greeting_.replies; ++i) {
    Request& request = loop_.requests().make();
    request.receiver = this;
    request.since = begun_;
    request.size = 0;
    line_.push(request);
    server_.counters().out_queue.add();
  }
  tried_ = 0;
  if (server_.addresses().empty()) {
    phase_ = Phase::resolving;
    server_.resolve(this);
    return;
  }
  static_cast<void>(begin_connection());
}

/// With the first address that lets it begin, of those that it has not tried; false: none does.
bool Upstream::begin_connection() {
  while (tried_ < server_.addresses().size()) {
    ++tried_;
    address_ = server_.addresses().current();
    try {
      replace(server_.pool().connect(server_));
      if (phase_ != Phase::connecting) server_.counters().server_connections.add();
      phase_ = Phase::connecting;
      return true;
    } catch (const std::system_error& error) {
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
  if (!begin_connection()) lost(Failure::refused, begun_);
}

void Upstream::writable() {
  if (phase_ != Phase::connecting) return;
  if (const int error = pending_error(descriptor()); error != 0) return ended(error);
  phase_ = Phase::open;
}

void Upstream::flushed() { server_.pool().there_is_room(); }

std::size_t Upstream::consume(std::string_view bytes) {
  heard_ = loop_.now();
  std::size_t used = 0;
  while (used < bytes.size()) {
    const auto rest = bytes.substr(used);
    const auto state = reader_->read(rest);
    if (state == ReplyReader::State::incomplete) break;
    if (state == ReplyReader::State::bad && reader_->is_too_long() && !line_.empty()) {
      refuse_long_reply();
      return 0;
    }
    const bool unasked = reader_->is_push() || (line_.empty() && listener_ != nullptr);
    if (state == ReplyReader::State::bad || (line_.empty() && !unasked)) {
      log(LogLevel::error,
          fmt::format("server '{}' sent what is no reply to anything; its connection is closed",
                      server_.settings().name));
      ended(EPROTO);
      return 0;
    }
    used += reader_->size();
    const auto message = rest.substr(0, reader_->size());
    if (!(unasked ? hear(message) : deliver(message))) return 0;
  }
  return used;
}

/// False: the connection was closed over it.
bool Upstream::hear(std::string_view message) {
  const auto before = generation();
  if (listener_) listener_->heard(message);
  return before == generation();
}

/// False: the connection was closed over it.
bool Upstream::deliver(std::string_view reply) {
  const auto before = generation();
  Request& request = line_.pop();
  auto& counters = server_.counters();
  if (request.receiver != this) {
    counters.responses.add();
    counters.response_bytes.add(static_cast<std::int64_t>(reply.size()));
  }
  counters.out_queue.add(-1);
  counters.out_queue_bytes.add(-static_cast<std::int64_t>(request.size));
  auto& pool = server_.pool();
  if (reply.front() == '-' && pool.is_strict() && pool.protocol().is_server_trouble(reply)) {
    if (request.receiver) request.receiver->failed(request, Failure::invalid);
    lost(Failure::invalid, loop_.now());
    return false;
  }
  // An error that says "not now", or to the greeting, is no sign of health.
  const bool good = reply.front() != '-' ||
                    (request.receiver != this && !pool.protocol().is_server_trouble(reply));
  if (good) server_.health().succeeded();
  if (request.receiver) {
    pool.observe(server_, request, reply);
    request.receiver->replied(request, reply);
  } else {
    if (request.abandoned) counters.late_replies.add();
    loop_.requests().drop(request);
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
  if (error == 0 && line_.empty() && !server_.pool().is_strict())
    return close(Failure::closed);  // it may: nothing is lost
  lost(failure_of(error), heard_);
}

/// The request fails that it answers; and those behind it, whose replies cannot be reached. The
/// server is well.
void Upstream::refuse_long_reply() {
  log(LogLevel::error,
      fmt::format("server '{}' sent a reply beyond reply_size_limit; its connection is closed",
                  server_.settings().name));
  server_.counters().server_err.add();
  Request& request = line_.pop();
  server_.counters().out_queue.add(-1);
  server_.counters().out_queue_bytes.add(-static_cast<std::int64_t>(request.size));
  if (request.receiver)
    request.receiver->failed(request, Failure::too_long);
  else
    loop_.requests().drop(request);
  close(Failure::reset);
}

/// Closes, and counts it against the server as a failure of something that began at `since`.
void Upstream::lost(Failure failure, SteadyTime since) {
  log(LogLevel::warning, fmt::format("server '{}': connection lost with {} requests under way",
                                     server_.settings().name, line_.size()));
  server_.weigh_failure(since);
  if (phase_ == Phase::connecting) server_.skip(address_);
  server_.look_again();
  close(failure);
}

void Upstream::close(Failure failure) {
  disconnect();
  if (auto* const listener = std::exchange(listener_, nullptr)) {
    std::string reply;
    server_.pool().protocol().append_failure(reply, failure);
    listener->lost(reply);
  }
  fail_all(failure);
  server_.pool().there_is_room();
}

void Upstream::disconnect() noexcept {
  if (phase_ == Phase::connecting || phase_ == Phase::open)
    server_.counters().server_connections.add(-1);
  if (phase_ == Phase::resolving) server_.forget(*this);
  phase_ = Phase::closed;
  detach();
  behind_greeting_ = {};
  greeting_left_ = 0;
  reader_ = server_.pool().protocol().reply_reader();
}

void Upstream::fail_all(Failure failure) {
  leave([failure](Request& request) { request.receiver->failed(request, failure); });
}

/// Empties the line: what is to be told to those who wait.
template <class Tell>
void Upstream::leave(Tell tell) {
  auto line = std::exchange(line_, {});  // receivers may ask again at once
  while (!line.empty()) {
    Request& request = line.pop();
    server_.counters().out_queue.add(-1);
    server_.counters().out_queue_bytes.add(-static_cast<std::int64_t>(request.size));
    if (request.receiver)
      tell(request);
    else
      loop_.requests().drop(request);
  }
}

SteadyTime Upstream::next_deadline() const noexcept {
  if (line_.empty()) return SteadyTime::max();
  const auto& settings = server_.pool().settings();
  const bool connecting = phase_ == Phase::connecting || phase_ == Phase::resolving;
  const auto connected_by = connecting && !server_.pool().is_strict()
                                ? begun_ + settings.connect_timeout
                                : SteadyTime::max();
  if (!settings.timeout || (patient_ && greeting_left_ == 0)) return connected_by;
  for (const Request* request = line_.head(); request; request = request->behind)
    if (!request->abandoned) return std::min(connected_by, request->since + *settings.timeout);
  return std::min(connected_by, heard_ + 2 * *settings.timeout);
}

void Upstream::check_time() {
  const auto& settings = server_.pool().settings();
  const auto now = loop_.now();
  const bool connecting = phase_ == Phase::connecting || phase_ == Phase::resolving;
  if (connecting && !line_.empty() && !server_.pool().is_strict() &&
      now >= begun_ + settings.connect_timeout)
    return time_out_all();
  if (!settings.timeout || line_.empty() || (patient_ && greeting_left_ == 0)) return;
  if (server_.pool().is_strict() || connecting || greeting_left_ != 0) {
    if (now >= line_.head()->since + *settings.timeout) time_out_all();
  } else if (line_.head()->abandoned && now >= heard_ + 2 * *settings.timeout) {
    time_out_all();
  } else {
    time_out_late();
  }
}

void Upstream::time_out_all() {
  server_.counters().server_timedout.add();
  lost(Failure::timed_out, line_.head()->since);
}

/// The line keeps a stand-in for each, whose reply will be dropped.
void Upstream::time_out_late() {
  const auto latest = loop_.now() - *server_.pool().settings().timeout;
  const auto connection = generation();
  Request* before = nullptr;
  for (Request* request = line_.head(); request && request->since <= latest;
       request = before->behind) {
    if (request->abandoned) {
      before = request;
      continue;
    }
    Request& stand_in = loop_.requests().make();
    stand_in.abandoned = true;
    stand_in.since = request->since;
    stand_in.size = request->size;
    line_.replace(before, *request, stand_in);
    before = &stand_in;
    server_.counters().server_timedout.add();
    server_.weigh_failure(request->since);
    if (request->receiver)
      request->receiver->failed(*request, Failure::timed_out);
    else
      loop_.requests().drop(*request);
    if (connection != generation()) return;  // its receiver has closed it
  }
}

void Upstream::replied(Request& request, std::string_view reply) {
  loop_.requests().drop(request);
  if (phase_ == Phase::closed) return;
  if (reply.front() == '-') {
    const auto line_end = reply.find('\r');
    log(LogLevel::error,
        fmt::format("server '{}' refuses our greeting: {}", server_.settings().name,
                    reply.substr(1, line_end == reply.npos ? reply.npos : line_end - 1)));
  }
  if (!server_.pool().protocol().is_welcome(reply)) {
    turn_away(reply);
  } else if (greeting_left_ != 0 && --greeting_left_ == 0 && !behind_greeting_.empty()) {
    write(std::exchange(behind_greeting_, {}));
  }
}

/// Closes; whoever waits learns what the server said.
void Upstream::turn_away(std::string_view reply) {
  if (greeting_.is_of_pool) server_.weigh_failure(begun_);
  const std::string error{reply};  // not of the buffer, which goes
  disconnect();
  if (auto* const listener = std::exchange(listener_, nullptr)) listener->lost(error);
  leave([&](Request& request) { request.receiver->replied(request, error); });
  server_.pool().there_is_room();
}

void Upstream::failed(Request& request, Failure) { loop_.requests().drop(request); }

}  // namespace sluice::proxy
