#include "proxy/flow/client.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/gather.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/retry.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy {
namespace {

// How long a reply may be, as long as none has come: fewer requests are let through at first than
// when replies have turned out to be short.
constexpr std::size_t expected_at_first = std::size_t{512} << 10;
// What a client is expected to get sinks by such a part with each reply that is shorter.
constexpr std::size_t expectation_sinks = 8;
// A client that leaves so many times its output limit lying is closed.
constexpr std::size_t out_of_bounds = 4;

constexpr std::size_t most_kept_size = std::size_t{16} << 10;
constexpr std::size_t most_kept = 1024;

// Much more than the way from one end of a connection to the other takes, within a site.
constexpr std::chrono::milliseconds quiet_time{50};

}  // namespace

Client::Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t number,
               std::size_t place)
    : Stream(pool.loop()),
      pool_(pool),
      expected_(expected_at_first),
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
  abandon_line();
  session_.reset();
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
  if (session_) session_->drain();
  if (loop_.now() - last_active_ >= quiet_time && is_idle() && !reader_) drain_now();
}

void Client::drain_now() {
  draining_ = true;
  if (session_) session_->drain();
  loop_.flush_later(*this);
}

void Client::settle() {
  settling_ = !line_.empty();
  if (!paused() && is_too_far_ahead()) wait_for_room();
}

void Client::flushed() {
  last_active_ = loop_.now();
  if (paused()) go_on();
  if (!line_.empty()) return;
  const bool has_begun = memory() != 0 || (session_ && session_->is_busy());
  if (closing_ || (draining_ && !has_begun)) close();
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
    if (const auto words = reader.words(); !words.empty()) {
      serve(words, rest.substr(0, size));
      if (postponed_) break;
      pool_.counters().requests.add();
      if (closed()) return 0;
      if (skipping_ != 0 && --skipping_ == 0) muted_ = false;
    }
    used += size;
  }
  if (reader_) pool_.give_back(std::move(reader_));
  return closing_ ? bytes.size() : used;
}

void Client::serve(Words words, std::string_view bytes) {
  const Plan plan = pool_.protocol().plan(words);
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
  if (!closed() && !postponed_ && !paused() && is_too_far_ahead()) wait_for_room();
}

ClientSession& Client::session() {
  if (!session_) session_ = std::make_unique<ClientSession>(*this);
  return *session_;
}

ClientFigures Client::figures() const {
  return {.id = pool_.id_of(*this),
          .pool = pool_.settings().name,
          .address = net::peer_of(descriptor()),
          .idle = std::chrono::floor<std::chrono::milliseconds>(loop_.now() - last_active_),
          .under_way = line_.size(),
          .bytes = holds()};
}

bool Client::is_idle() const noexcept {
  return line_.empty() && unsent() == 0 && !held_ && !(session_ && session_->is_subscribed());
}

void Client::hold() {
  held_ = true;
  pause();
}

void Client::release() {
  held_ = false;
  go_on();
}

void Client::postpone() {
  postponed_ = true;
  hold();
}

/// Who has left while it waits on a server would be given what is then lost.
void Client::hung_up() {
  if (session_ && session_->is_blocked()) close();
}

void Client::forward(Words words, std::string_view bytes, const Plan& plan) {
  if (Server* const home = home_or_answer(words, plan)) send(*home, words, bytes, plan);
}

Server* Client::home_or_answer(Words words, const Plan& plan) {
  const auto home = home_for(words, plan);
  if (home.server) return home.server;
  auto& counters = pool_.counters();
  (home.failure == Failure::crossed ? counters.crossed_requests : counters.forward_error).add();
  answer(home.failure);
  return nullptr;
}

Client::Home Client::home_for(Words words, const Plan& plan) const {
  const auto route = !plan.route.empty() ? plan.route
                     : plan.keys.empty() ? any_key
                                         : words[plan.keys.front()];
  Server* const home = pool_.home_of(route);
  if (!pool_.is_strict() && pool_.settings().distribution != Distribution::random)
    for (const auto position : plan.keys.subspan(std::min<std::size_t>(1, plan.keys.size())))
      if (pool_.home_of(words[position]) != home) return {nullptr, Failure::crossed};
  return {home, Failure::refused};
}

/// What it takes to ask again is kept, of a modest number of modest requests.
bool Client::may_be_asked_again(const Plan& plan, std::size_t size) const noexcept {
  return ((plan.read_only && pool_.settings().retry_reads) || plan.verb == SessionVerb::evalsha) &&
         size <= most_kept_size && line_.size() <= most_kept;
}

void Client::send(Server& home, Words words, std::string_view bytes, const Plan& plan) {
  if (!plan.keys.empty()) pool_.note_key(words[plan.keys.front()]);
  Upstream& upstream = home.upstream(variant_, number_);
  if (plan.expects_reply) {
    Request& request = line_up(plan);
    if (!plan.keys.empty()) note_key(request, words[plan.keys.front()]);
    if (may_be_asked_again(plan, bytes.size())) request.body = std::make_unique<std::string>(bytes);
    upstream.send(request, bytes);
  } else {
    upstream.send_only(bytes);
  }
  wait_if_full(upstream);
}

void Client::wait_if_full(const Upstream& upstream) {
  if (upstream.is_full()) wait_for_server();
}

void Client::wait_for_server() {
  if (closed()) return;
  crowded_ = true;
  wait_for_room();
}

void Client::scatter(Words words, std::string_view bytes, const Plan& plan) {
  if (plan.way == Way::homes && plan.keys.size() == 1) return forward(words, bytes, plan);
  if (Gather::begin(pool_, line_up(plan), words, bytes, plan, variant_, number_)) wait_for_server();
}

Request& Client::line_up(const Plan& plan) {
  Request& request = loop_.requests().make();
  request.receiver = this;
  request.command = plan.command;
  request.read_only = plan.read_only;
  request.quiet = muted_ ? Quiet::all : plan.quiet;
  line_.push(request);
  return request;
}

void Client::answer(std::string_view reply) {
  if (muted_) return;
  if (line_.empty()) return write(reply);
  park(line_up({}), reply);
}

void Client::answer(Failure failure) {
  std::string reply;
  pool_.protocol().append_failure(reply, failure);
  answer(reply);
}

void Client::last_word(const Plan& plan) {
  (plan.is_wish ? pool_.counters().client_eof : pool_.counters().client_err).add();
  if (plan.drop_pending && plan.reply.empty()) return close();
  if (!plan.reply.empty()) answer(plan.reply);
  close_later();
}

void Client::replied(Request& request, std::string_view reply) {
  if (reply.starts_with('-') && session_ && session_->heal(request, reply)) return;
  if (request.quiet != Quiet::no && is_silent(request.quiet, reply)) reply = "";
  if (!overflown_ && is_beyond_bounds()) overflow();  // one reply, however long, never makes it so
  if (overflown_) reply = "";
  expected_ = reply.size() >= expected_
                  ? reply.size()
                  : expected_ - (expected_ - reply.size()) / expectation_sinks;
  if (line_.head() != &request) return park(request, reply);
  pass_on(reply);
  release_answered();
}

/// It goes, but not now: whoever brings the reply may be a part of its session.
void Client::overflow() {
  pool_.counters().client_overflows.add();
  overflown_ = closing_ = true;
  pause();
  pool_.dismiss(*this);
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
  if (request.body && ask_again(request, failure)) return;
  pool_.counters().forward_error.add();
  std::string reply;
  pool_.protocol().append_failure(reply, failure);
  replied(request, reply);
}

/// Its keys may have another home by now.
bool Client::ask_again(Request& request, Failure failure) {
  if (!may_ask_again(request, request, failure) || !pool_.settings().retry_reads) return false;
  const auto reader = pool_.protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return false;
  const auto plan = pool_.protocol().plan(reader->words());
  Server* const home = home_for(reader->words(), plan).server;
  if (!home) return false;
  request.retried = true;
  pool_.counters().retries.add();
  home->upstream(variant_, number_).send(request, *request.body);
  return true;
}

void Client::release_answered() {
  while (!line_.empty() && line_.head()->answered) {
    const auto& reply = line_.head()->reply;
    if (reply.memory() != 0) kept_for(-static_cast<std::ptrdiff_t>(reply.memory()));
    pass_on(reply.view());
  }
  if (postponed_ && line_.empty()) {
    postponed_ = false;
    held_ = false;
  }
  if (paused()) go_on();
}

bool Client::is_silent(Quiet quiet, std::string_view reply) const noexcept {
  return quiet == Quiet::all || pool_.protocol().is_silent(quiet, reply);
}

/// What it would get if all its requests were answered as the last ones counts, too: those that are
/// at the servers cannot be called back.
bool Client::is_too_far_ahead() const noexcept {
  const auto& settings = pool_.settings();
  return (settling_ && !line_.empty()) ||
         unsent() + parked_ + line_.size() * expected_ > settings.client_output_limit + expected_ ||
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
  if (closing_ || held_ || crowded_ || is_too_far_ahead()) return;
  settling_ = false;
  resume();
}

void Client::ended(int error) {
  auto& counters = pool_.counters();
  (error == 0 ? counters.client_eof : counters.client_err).add();
  if (error == 0 && (!line_.empty() || unsent() != 0)) return close_later();  // it may still read
  close();
}

}  // namespace sluice::proxy
