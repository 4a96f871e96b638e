#include "proxy/flow/client.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/gather.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy {
namespace {

// So many requests are let through before anything is known of their replies; more when those turn out to be short.
constexpr std::size_t first_requests = 128;
// What a client is expected to get sinks by such a part with each reply that is shorter.
constexpr std::size_t expectation_sinks = 8;
// A client that leaves so many times its output limit lying is closed.
constexpr std::size_t out_of_bounds = 4;

constexpr std::string_view any_key = "placeholder";  // twemproxy's, for commands without a key

}  // namespace

Client::Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t number,
               std::size_t place)
    : Stream(pool.loop()),
      pool_(pool),
      expected_(pool.settings().client_output_limit / first_requests),
      number_(number),
      place_(place),
      last_active_(pool.loop().now()),
      variant_{.resp = 2, .db = pool.settings().redis_db},
      logged_in_(!pool.wants_login()) {
  attach(std::move(transport));
}

Client::~Client() = default;

void Client::close() noexcept {
  if (closed()) return;
  session_.reset();
  abandon_line();
  detach();
  pool_.remove(*this);
}

void Client::abandon_line() noexcept {
  while (!line_.empty()) {
    Request& request = line_.pop();
    if (request.answered)
      loop_.requests().drop(request);
    else
      request.receiver = nullptr;  // whoever has its outcome drops it
  }
  loop_.blocks().charge(-static_cast<std::int64_t>(parked_));
  parked_ = 0;
}

void Client::close_later() {
  closing_ = true;
  pause();
  loop_.flush_later(*this);
}

void Client::drain() {
  draining_ = true;
  loop_.flush_later(*this);
}

void Client::flushed() {
  last_active_ = loop_.now();
  if (line_.empty() && (closing_ || draining_)) return close();
  if (paused()) go_on();
}

bool Client::gives_way() {
  wait_for_room();
  return true;
}

std::size_t Client::consume(std::string_view bytes) {
  last_active_ = loop_.now();
  std::size_t used = 0;
  while (used < bytes.size() && !paused()) {
    RequestReader& reader = reader_ ? *reader_ : pool_.reader();
    const auto rest = bytes.substr(used);
    const auto state = reader.read(rest);
    if (state == RequestReader::State::incomplete) {
      if (!reader_) reader_ = pool_.take_reader();
      return used;
    }
    if (state == RequestReader::State::bad) {
      const auto reply = reader.error_reply();
      if (!reader_) static_cast<void>(pool_.take_reader());  // it is of no more use
      reader_.reset();
      last_word({.way = Way::close, .drop_pending = reply.empty(), .reply = reply});
      return closed() ? 0 : bytes.size();
    }
    const auto size = reader.size();
    serve(reader.words(), rest.substr(0, size));
    if (closed()) return 0;
    used += size;
  }
  if (reader_) pool_.give_back(std::move(reader_));
  return closing_ ? bytes.size() : used;
}

void Client::serve(Words words, std::string_view bytes) {
  if (words.empty()) return;
  const Plan plan = pool_.protocol().plan(words);
  pool_.counters().requests.add();
  if (!plan.forward.empty()) bytes = plan.forward;
  if ((!logged_in_ || session_) && plan.way != Way::close &&
      session().intercept(words, bytes, plan))
    return;
  switch (plan.way) {
    case Way::one:
    case Way::any: forward(words, bytes, plan); break;
    case Way::homes:
    case Way::every: scatter(words, bytes, plan); break;
    case Way::local:
      pool_.counters().local_replies.add();
      answer(plan.reply);
      break;
    case Way::session: session().serve(words, bytes, plan); break;
    case Way::refused:
      pool_.counters().refused_requests.add();
      answer(plan.reply);
      break;
    case Way::close: last_word(plan); break;
  }
  if (!closed() && !paused() && is_too_far_ahead()) wait_for_room();
}

ClientSession& Client::session() {
  if (!session_) session_ = std::make_unique<ClientSession>(*this);
  return *session_;
}

void Client::hold() {
  held_ = true;
  pause();
}

void Client::release() {
  held_ = false;
  go_on();
}

void Client::forward(Words words, std::string_view bytes, const Plan& plan) {
  const auto route = !plan.route.empty() ? plan.route
                     : plan.keys.empty() ? any_key
                                         : words[plan.keys.front()];
  Server* home = pool_.home_of(route);
  if (!pool_.is_strict() && pool_.settings().distribution != Distribution::random)
    for (const auto position : plan.keys.subspan(std::min<std::size_t>(1, plan.keys.size())))
      if (pool_.home_of(words[position]) != home) {
        pool_.counters().crossed_requests.add();
        return answer(Failure::crossed);
      }
  if (!home) {
    pool_.counters().forward_error.add();
    return answer(Failure::refused);
  }
  send(*home, words, bytes, plan);
}

void Client::send(Server& home, Words words, std::string_view bytes, const Plan& plan) {
  if (!plan.keys.empty()) pool_.note_key(words[plan.keys.front()]);
  Upstream& upstream = home.upstream(variant_, number_);
  if (plan.expects_reply) {
    Request& request = line_up(plan);
    if (!plan.keys.empty()) note_key(request, words[plan.keys.front()]);
    if (plan.read_only && pool_.settings().retry_reads)
      request.body = std::make_unique<std::string>(bytes);
    upstream.send(request, bytes);
  } else {
    upstream.send_only(bytes);
  }
  if (!closed() && upstream.is_full()) {
    crowded_ = true;
    wait_for_room();
  }
}

void Client::scatter(Words words, std::string_view bytes, const Plan& plan) {
  if (plan.way == Way::homes && plan.keys.size() == 1) return forward(words, bytes, plan);
  const bool full =
      Gather::begin(pool_, line_up(plan), words, bytes, plan, variant_, number_);
  if (!closed() && full) {
    crowded_ = true;
    wait_for_room();
  }
}

Request& Client::line_up(const Plan& plan) {
  Request& request = loop_.requests().make();
  request.receiver = this;
  request.command = plan.command;
  request.read_only = plan.read_only;
  request.quiet = plan.quiet;
  line_.push(request);
  return request;
}

void Client::answer(std::string_view reply) {
  if (line_.empty()) return write(reply);
  Request& request = line_up({});
  request.reply.assign(reply);
  request.answered = true;
}

void Client::answer(Failure failure) {
  std::string reply;
  pool_.protocol().append_failure(reply, failure);
  answer(reply);
}

void Client::last_word(const Plan& plan) {
  if (plan.drop_pending && plan.reply.empty()) return close();
  if (!plan.reply.empty()) answer(plan.reply);
  close_later();
}

void Client::replied(Request& request, std::string_view reply) {
  if (request.quiet != Quiet::no && pool_.protocol().is_silent(request.quiet, reply)) reply = {};
  if (is_beyond_bounds()) {  // one reply, however long, never makes it so
    pool_.counters().client_overflows.add();
    return close();
  }
  expected_ = reply.size() >= expected_
                  ? reply.size()
                  : expected_ - (expected_ - reply.size()) / expectation_sinks;
  if (line_.head() != &request) return park(request, reply);
  pass_on(reply);
  release_answered();
}

void Client::park(Request& request, std::string_view reply) {
  request.reply.assign(reply);
  request.answered = true;
  kept_for(static_cast<std::ptrdiff_t>(request.reply.memory()));
}

void Client::kept_for(std::ptrdiff_t bytes) {
  parked_ += static_cast<std::size_t>(bytes);
  loop_.blocks().charge(bytes);
}

void Client::pass_on(std::string_view reply) {
  if (!reply.empty()) write(reply);
  Request& request = line_.pop();
  const bool last = request.last;
  loop_.requests().drop(request);
  if (!last) return;
  abandon_line();
  close_later();
}

void Client::failed(Request& request, Failure failure) {
  pool_.counters().forward_error.add();
  std::string reply;
  pool_.protocol().append_failure(reply, failure);
  replied(request, reply);
}

void Client::release_answered() {
  while (!line_.empty() && line_.head()->answered) {
    const auto& reply = line_.head()->reply;
    if (reply.memory() != 0) kept_for(-static_cast<std::ptrdiff_t>(reply.memory()));
    pass_on(reply.view());
  }
  if (paused()) go_on();
}

/// What it would get if all its requests were answered as the last ones counts, too: those that are at the servers
/// cannot be called back.
bool Client::is_too_far_ahead() const noexcept {
  const auto& settings = pool_.settings();
  return unsent() + parked_ + line_.size() * expected_ > settings.client_output_limit + expected_ ||
         line_.size() >= settings.client_pending_limit || loop_.blocks().is_full();
}

bool Client::is_beyond_bounds() const noexcept {
  return unsent() + parked_ > pool_.settings().client_output_limit * out_of_bounds;
}

void Client::wait_for_room() {
  pause();
  if (std::exchange(waits_, true)) return;
  pool_.wait_for_room(*this);
}

void Client::there_is_room() {
  waits_ = crowded_ = false;
  if (is_too_far_ahead())
    wait_for_room();
  else
    go_on();
}

void Client::go_on() {
  if (!closing_ && !held_ && !crowded_ && !is_too_far_ahead()) resume();
}

void Client::ended(int error) {
  auto& counters = pool_.counters();
  (error == 0 ? counters.client_eof : counters.client_err).add();
  if (error == 0 && (!line_.empty() || unsent() != 0)) return close_later();  // it may still read
  close();
}

}  // namespace sluice::proxy
