#include "http/connection.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <exception>
#include <utility>

#include "base/callback.hpp"
#include "http/text.hpp"
#include "http/worker.hpp"

namespace sluice::http {
namespace {

constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view comment = ":\n\n";

/// Fields of one name are one list (RFC 9110, 5.3). Read one by one, the first, which a client may
/// write as it likes, would count before those of the proxies.
std::string forwarded_for(const Request& request) {
  std::string list;
  for (const auto& field : request.fields()) {
    if (!same_word(field.name, "X-Forwarded-For")) continue;
    if (!list.empty()) list += ", ";
    list += field.value;
  }
  return list;
}

/// What the client has not confirmed, of all that it was sent.
bool has_unconfirmed(int descriptor) {
  int bytes = 0;
  return ::ioctl(descriptor, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

}  // namespace

Connection::Connection(Worker& worker, std::uint64_t id, std::unique_ptr<net::Transport> transport,
                       std::string client, std::string place, bool tls)
    : loop::Stream(worker.loop()),
      worker_(worker),
      id_(id),
      reader_(worker.limits()),
      client_(std::move(client)),
      place_(std::move(place)),
      tls_(tls) {
  attach(std::move(transport));
}

Connection::~Connection() { drop_stream(); }

void Connection::close() {
  if (closed()) return;
  drop_stream();
  detach();
  auto watches = take_watches();
  worker_.forget(*this);
  for (auto& gone : watches) gone.request_stop();
}

/// The client does not take what it was sent. In an orderly end the kernel would keep that, and ask
/// the client whether it reads, for minutes.
void Connection::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void Connection::watch(std::uint64_t request, std::stop_source gone) {
  const auto place = request - first_asked_;
  const bool is_over = closed() || has_said_all_ || worker_.is_draining();
  if (is_over || place >= asked_.size() || asked_[place].response)
    gone.request_stop();
  else
    asked_[place].gone = std::move(gone);
}

std::vector<std::stop_source> Connection::take_watches() {
  std::vector<std::stop_source> watches;
  for (auto& asked : asked_)
    if (auto gone = std::exchange(asked.gone, std::nullopt)) watches.push_back(std::move(*gone));
  return watches;
}

void Connection::drop_stream() noexcept {
  for (const auto& asked : asked_)
    if (asked.stream) asked.stream->is_open.store(false, std::memory_order_release);
  if (stream_) stream_->is_open.store(false, std::memory_order_release);
}

std::size_t Connection::consume(std::string_view bytes) {
  std::size_t used = 0;
  while (!closed() && !paused() && !is_deaf_) {
    used += reader_.read(bytes.substr(used));
    if (reader_.stage() == RequestReader::Stage::refused)
      refuse(*reader_.refusal().problem, reader_.refusal().detail);
    else if (reader_.stage() == RequestReader::Stage::done)
      serve(reader_.take_request());
    else
      break;
  }
  if (closed()) return used;
  settle();
  return is_deaf_ ? bytes.size() : used;
}

void Connection::serve(Request request) {
  request.client_ = worker_.trusted().has(client_)
                        ? worker_.trusted().client_behind(client_, forwarded_for(request))
                        : client_;
  request.tls_ = tls_;

  const auto found = worker_.routes().find(request);
  const auto number = first_asked_ + asked_.size();
  const auto last = worker_.routes().all().size();
  asked_.push_back({.response = {},
                    .stream = {},
                    .gone = {},
                    .since = loop_.now(),
                    .route = static_cast<std::uint32_t>(found.route ? found.index : last),
                    .is_head = request.method() == "HEAD",
                    .is_http_1_0 = request.is_http_1_0(),
                    .is_tls = request.came_by_tls(),
                    .keep_alive = request.keep_alive_});
  if (!request.keep_alive_) is_deaf_ = true;
  if (asked_.size() >= worker_.limits().pipelined) pause();
  if (found.is_malformed) {
    answer(number, problem(problems::bad_request, "an escape of the path is wrong"));
  } else if (found.route) {
    Responder respond{worker_.mailbox(), id_, number};
    try {
      found.route->handler(std::move(request), std::move(respond));
    } catch (...) {  // the responder answers, at the latest when it is dropped
      report_thrown(found.route->operation, std::current_exception());
    }
  } else if (found.allow.empty()) {
    answer(number, problem(problems::not_found));
  } else {
    auto refusal = problem(problems::method_not_allowed);
    refusal.add("Allow", found.allow);
    answer(number, std::move(refusal));
  }
  if (!closed() && unsent() > worker_.limits().unsent) pause();
}

/// Behind the answers to what came before it.
void Connection::refuse(const ProblemType& type, std::string_view detail) {
  worker_.counts().refused(type);
  is_deaf_ = true;
  lingers_ = true;
  const auto number = first_asked_ + asked_.size();
  asked_.push_back({.response = {},
                    .stream = {},
                    .gone = {},
                    .since = loop_.now(),
                    .route = static_cast<std::uint32_t>(worker_.routes().all().size()),
                    .is_tls = tls_,
                    .keep_alive = false});
  answer(number, problem(type, detail));
}

void Connection::answer(std::uint64_t request, Response response) {
  const auto place = request - first_asked_;
  if (closed() || place >= asked_.size() || asked_[place].response) return;
  asked_[place].response = std::move(response);
  asked_[place].gone.reset();
  if (place == 0) send_answers();
}

void Connection::begin_stream(std::uint64_t request, std::shared_ptr<EventStream::State> state) {
  const auto place = request - first_asked_;
  if (closed() || place >= asked_.size() || asked_[place].response) {
    state->is_open.store(false, std::memory_order_release);
    return;
  }
  asked_[place].stream = std::move(state);
  Response head{.status = 200, .media = "text/event-stream", .body = {}, .fields = {}};
  head.add("X-Accel-Buffering", "no");
  answer(request, std::move(head));
}

/// All that are ready, from the front.
void Connection::send_answers() {
  while (!closed() && !is_ending_ && !stream_ && !asked_.empty() && asked_.front().response) {
    auto asked = std::move(asked_.front());
    asked_.erase(asked_.begin());
    ++first_asked_;
    send_answer(std::move(asked));
  }
  if (closed()) return;
  if (asked_.empty()) asked_ = {};  // an idle connection has no memory for them
  read_on();
  settle();
}

void Connection::send_answer(Asked asked) {
  // More of the client that is here already is answered before its connection ends.
  const bool is_last = asked_.empty() && (worker_.is_draining() || has_said_all_);
  const Framing framing{.date = worker_.date(),
                        .is_head = asked.is_head,
                        .keep_alive = asked.keep_alive && !is_last && !asked.stream,
                        .is_http_1_0 = asked.is_http_1_0,
                        .is_endless = asked.stream != nullptr,
                        .is_tls = asked.is_tls,
                        .vary = worker_.vary()};
  worker_.counts().answered(asked.route, asked.response->status,
                            worker_.loop().clock().steady() - asked.since);
  auto& text = worker_.scratch();
  http::append(text, *asked.response, framing);
  write(text);
  text.clear();
  const bool goes_on = asked.stream && asked.stream->is_open && !asked.is_head;
  if (goes_on && !worker_.is_draining()) {
    stream_ = std::move(asked.stream);
    is_deaf_ = true;
  } else if (!framing.keep_alive) {
    if (asked.stream) asked.stream->is_open.store(false, std::memory_order_release);
    end_behind_answer(lingers_ || !unread().empty() || asked.keep_alive);
  }
}

void Connection::end_behind_answer(bool lingers) {
  is_ending_ = is_deaf_ = true;
  lingers_ = lingers && is_bare();
  drop_stream();
}

void Connection::send_event(std::string_view bytes) {
  if (closed()) return;
  const auto most = worker_.limits().unsent;
  if (stream_) {
    if (unsent() + bytes.size() <= most) return write(bytes);
  } else {
    for (auto& asked : asked_) {
      if (!asked.stream) continue;
      if (asked.response->body.size() + bytes.size() > most) break;
      asked.response->body += bytes;
      return;
    }
    if (asked_.empty()) return;
  }
  worker_.counts().slow_event_reader.add();
  reset();
}

void Connection::end_stream() {
  if (closed()) return;
  if (stream_) {
    if (unsent() == 0) return close();
    drop_stream();
    stream_.reset();
    is_ending_ = true;
    return settle();
  }
  for (auto& asked : asked_)
    if (asked.stream) asked.stream->is_open.store(false, std::memory_order_release);
}

/// Reading goes on when there is room for what it brings.
void Connection::read_on() {
  const auto& limits = worker_.limits();
  if (paused() && !has_said_all_ && asked_.size() < limits.pipelined && unsent() <= limits.unsent)
    resume();
}

void Connection::flushed() {
  if (is_ending_) {
    if (!lingers_) return close();
    // The client reads the answer to its end before it hears that the rest of what it sends is
    // nobody's: closed with bytes unread, the connection would be reset and the answer lost.
    if (phase_ == Phase::lingering) return;
    ::shutdown(descriptor(), SHUT_WR);
    worker_.enter(*this, Phase::lingering);
    return resume();
  }
  was_stuck_ = false;
  read_on();
  settle();
}

void Connection::ended(int error) {
  const bool owes = !asked_.empty() || (unsent() != 0 && phase_ != Phase::lingering);
  if (error != 0 || !owes || stream_) return close();
  has_said_all_ = is_deaf_ = true;
  if (asked_.empty()) is_ending_ = true;
  pause();
  for (auto& gone : take_watches()) gone.request_stop();  // last: it may answer
}

void Connection::settle() {
  if (closed() || phase_ == Phase::lingering) return;
  if (asked_.empty() && !is_deaf_ && reader_.take_expectation()) write(go_on);
  auto phase = Phase::idle;
  if (stream_)
    phase = Phase::streaming;
  else if (unsent() != 0)
    phase = Phase::sending;
  else if (!asked_.empty())
    phase = Phase::answering;
  else if (reader_.stage() == RequestReader::Stage::head)
    phase = Phase::head;
  else if (reader_.stage() == RequestReader::Stage::body)
    phase = Phase::body;
  else if (!is_established())
    phase = Phase::head;  // TLS has the same time
  if (phase != phase_) worker_.enter(*this, phase);
}

void Connection::overdue() {
  switch (phase_) {
    case Phase::head:
      if (reader_.stage() == RequestReader::Stage::head)
        return refuse(problems::timeout, "the head did not come in time");
      if (is_established()) return worker_.enter(*this, Phase::idle);
      worker_.counts().tls.add();
      return close();
    case Phase::body: return refuse(problems::timeout, "the body did not come in time");
    case Phase::sending: worker_.counts().slow_reader.add(); return reset();
    case Phase::streaming:
      if (std::exchange(was_stuck_, unsent() != 0)) {
        worker_.counts().slow_event_reader.add();
        return reset();
      }
      write(comment);
      return worker_.enter(*this, Phase::streaming);
    case Phase::idle:
    case Phase::answering:
    case Phase::lingering: return has_unconfirmed(descriptor()) ? reset() : close();
  }
}

}  // namespace sluice::http
