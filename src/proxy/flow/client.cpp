#include "proxy/flow/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

// How long the next reply is taken to be: as long as the longest of late. The estimate begins high,
// so that fewer requests are let through at first, and falls by an eighth of the difference with
// each shorter reply.
constexpr std::uint32_t expected_at_first = std::uint32_t{512} << 10;
constexpr std::uint32_t expectation_sinks = 8;
// A client that leaves so many times its output limit unread is closed.
constexpr std::size_t out_of_bounds = 4;

constexpr std::string_view proxy_ends = "the proxy ends: ask again on another connection";

// A read is kept, to be asked again, while it and the client's queue are no larger than this.
constexpr std::size_t most_kept_size = std::size_t{16} << 10;
constexpr std::size_t most_kept = 1024;

// Bytes of replies that a client may leave untaken before it has logged in: as in Redis.
constexpr std::size_t most_for_strangers = 1024;

}  // namespace

Client::Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t id,
               std::size_t place)
    : Stream(pool.loop()),
      pool_(pool),
      id_(id),
      expected_(expected_at_first),
      place_(static_cast<std::uint32_t>(place)),
      last_active_(pool.loop().now()),
      stranger_since_(last_active_),
      session_state_(pool.newcomer()) {
  attach(std::move(transport));
}

Client::~Client() = default;

void Client::close() noexcept {
  if (closed()) return;
  abandon_queue();
  session_.reset();
  detach();
  weigh_reader();
  static_cast<void>(keep_within_budget(0));
  pool_.clients().remove(*this);
}

void Client::abandon_queue() noexcept {
  while (!queue_.empty()) {
    Request& request = queue_.pop();
    if (request.answered)
      loop_.requests().drop(request);
    else
      request.receiver = nullptr;  // its upstream drops it with the reply
  }
  kept_for(-static_cast<std::ptrdiff_t>(parked_));
}

void Client::close_later() {
  state_.advance(Life::closing);
  pause();
  loop_.flush_later(*this);
}

void Client::drain() {
  if (session_) session_->unblock(proxy_ends);
  if (loop_.now() - last_active_ >= quiet_time && is_idle() && !reader_) drain_now();
}

void Client::drain_now() {
  state_.advance(Life::draining);
  if (session_) session_->unblock(proxy_ends);
  loop_.flush_later(*this);
}

void Client::apply(const PoolSettings& before) {
  if (!queue_.empty()) pause_for(Pause::reload);
  const auto& settings = pool_.settings();
  auto state = session_state_;
  if (state.mode.db == before.redis_db) state.mode.db = settings.redis_db;
  set_rights(state, before.wants_login());
}

/// Of its user by the settings as they are. `wanted_login`: those by which it has come to `state`.
void Client::set_rights(SessionState state, bool wanted_login) {
  const auto& settings = pool_.settings();
  const auto user = settings.find_user(session_ ? session_->user() : default_user);
  state.read_only = user && user->read_only;
  state.logged_in =
      !settings.wants_login() || (wanted_login && state.logged_in && user.has_value());
  const bool leaves = session_state_.logged_in && !state.logged_in;
  if (session_ && (leaves || (state.read_only && !session_state_.read_only))) session_->revoke();
  set_session_state(state);
  if (leaves) close_later();
}

void Client::set_session_state(const SessionState& state) noexcept {
  if (session_state_.logged_in && !state.logged_in) stranger_since_ = loop_.now();
  session_state_ = state;
}

void Client::flushed() {
  last_active_ = loop_.now();
  if (budgeted_ != 0) static_cast<void>(keep_within_budget(memory()));
  go_on();
  if (!queue_.empty()) return;
  if (state_.has(Pause::handover) && (hand_over(), closed())) return;
  const bool has_begun = memory() != 0 || (session_ && session_->is_in_transaction());
  if (state_.ends(has_begun)) close();
}

bool Client::gives_way() {
  if (is_modest() && memory() <= BlockPool::block) return false;
  wait_for_room();
  return true;
}

std::size_t Client::consume(std::string_view bytes) {
  last_active_ = loop_.now();
  const auto used = serve_all(bytes);
  if (reader_bytes_ != 0 || reader_) weigh_reader();
  const bool watched = !session_state_.logged_in || budgeted_ != 0;
  if (watched && !closed() && !keep_within_budget(bytes.size() - used)) {
    pool_.clients().evict(*this);
    return 0;
  }
  return used;
}

/// What a reader keeps of a long request counts as memory that is in use.
void Client::weigh_reader() noexcept {
  const auto bytes =
      reader_ && !closed() ? std::min<std::size_t>(reader_->memory(), UINT32_MAX) : 0;
  loop_.blocks().charge(static_cast<std::int64_t>(bytes) - std::int64_t{reader_bytes_});
  reader_bytes_ = static_cast<std::uint32_t>(bytes);
}

/// `unread`: bytes of requests that are not whole. False: strangers keep too much already.
bool Client::keep_within_budget(std::size_t unread) {
  const bool counts = !session_state_.logged_in && !closed();
  const auto input = std::max(unread, input_memory());
  const auto keeps = counts ? input + unsent() + parked_ + reader_bytes_ : 0;
  const auto more = static_cast<std::int64_t>(keeps) - std::int64_t{budgeted_};
  if (!pool_.context().limits.strangers.take(more)) return false;
  budgeted_ = static_cast<std::uint32_t>(keeps);
  return true;
}

std::size_t Client::serve_all(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && state_.reads()) {
    RequestReader& reader = reader_ ? *reader_ : pool_.clients().reader(session_state_.logged_in);
    const auto rest = bytes.substr(used);
    const auto state = reader.read(rest);
    if (state == RequestReader::State::incomplete) {
      if (!reader_) reader_ = pool_.clients().take_reader(session_state_.logged_in);
      return used;
    }
    if (state == RequestReader::State::bad) {
      const auto reply = reader.error_reply();
      if (!reader_)  // it is of no more use
        static_cast<void>(pool_.clients().take_reader(session_state_.logged_in));
      reader_.reset();
      last_word({.route = Route::close, .drop_pending = reply.empty(), .reply = reply});
      return closed() ? 0 : bytes.size();
    }
    const auto size = reader.size();
    if (const auto words = reader.words(); !words.empty()) {
      serve(words, reader.wire(rest));
      if (state_.has(Pause::turn)) break;
      pool_.counters().requests.add();
      if (closed()) return 0;
      reply_mode_.served();
    }
    reader_.reset();  // for the next request other limits may hold
    used += size;
  }
  return state_.is_closing() ? bytes.size() : used;
}

void Client::serve(Words words, std::string_view bytes) {
  const Plan plan = pool_.protocol().plan(words);
  if (!plan.forward.empty()) bytes = plan.forward;
  if (plan.route == Route::refused && is_http(words)) return turn_away_http();
  const bool is_watched = !session_state_.logged_in || session_;
  if (!is_watched || plan.route == Route::close || !session().intercept(words, bytes, plan))
    serve(plan, words, bytes);
  if (!closed() && state_.reads() && is_too_far_ahead()) wait_for_room();
}

void Client::serve(const Plan& plan, Words words, std::string_view bytes) {
  switch (plan.route) {
    case Route::one:
    case Route::any: forward(words, bytes, plan); break;
    case Route::homes:
    case Route::every: scatter(words, bytes, plan); break;
    case Route::local:
      pool_.counters().local_replies.add();
      answer(plan.reply);
      break;
    case Route::session: session().serve(words, bytes, plan); break;
    case Route::refused:
      pool_.counters().refused_requests.add();
      answer(plan.reply);
      break;
    case Route::close: last_word(plan); break;
  }
}

/// Of what follows the proxy would do what looks like a command: a browser was led here.
void Client::turn_away_http() {
  if (pool_.http_told().is_due(loop_.now()))
    log(LogLevel::warning, fmt::format("pool '{}': a client speaks HTTP, and is closed: {}",
                                       pool_.settings().name, peer()));
  pool_.counters().client_err.add();
  close();
}

BorrowedUpstream Client::borrow(Server& home, const ConnectionMode& mode) {
  if (!std::exchange(keeps_alive_, true)) net::keep_alive(descriptor());
  return home.borrow(mode);
}

ClientSession& Client::session() {
  if (!session_) session_ = std::make_unique<ClientSession>(*this);
  return *session_;
}

ClientFigures Client::figures() const {
  return {.id = id_,
          .pool = pool_.settings().name,
          .address = peer(),
          .idle = std::chrono::floor<std::chrono::milliseconds>(loop_.now() - last_active_),
          .under_way = queue_.size(),
          .bytes = holds()};
}

bool Client::is_idle() const noexcept {
  return queue_.empty() && unsent() == 0 && !state_.has(Pause::session) &&
         !(session_ && session_->is_subscribed());
}

void Client::pause_for(Pause reason) {
  state_.pause(reason);
  pause();
}

void Client::release() {
  state_.end(Pause::session);
  go_on();
}

/// A client that disconnects during a blocking command: close at once, or the server pops an
/// element for it and the element is lost.
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
  const auto key = !plan.routing_key.empty() ? plan.routing_key
                   : plan.keys.empty()       ? any_key
                                             : words[plan.keys.front()];
  Server* const home = pool_.servers().home_of(key);
  if (!pool_.is_strict() && pool_.settings().distribution != Distribution::random)
    for (const auto position : plan.keys.subspan(std::min<std::size_t>(1, plan.keys.size())))
      if (pool_.servers().home_of(words[position]) != home) return {nullptr, Failure::crossed};
  return {home, Failure::refused};
}

/// Whether its bytes are kept, so that it can be asked again.
bool Client::is_worth_keeping(const Plan& plan, std::size_t size) const noexcept {
  return ((plan.read_only && pool_.settings().retry_reads) || plan.verb == SessionVerb::evalsha) &&
         size <= most_kept_size && queue_.size() <= most_kept;
}

void Client::send(Server& home, Words words, std::string_view bytes, const Plan& plan) {
  if (!plan.keys.empty()) pool_.note_key(words[plan.keys.front()]);
  Upstream& upstream = home.upstream(session_state_.mode, id_);
  if (plan.expects_reply) {
    Request& request = enqueue(plan);
    if (!plan.keys.empty()) note_key(request, words[plan.keys.front()]);
    if (is_worth_keeping(plan, bytes.size())) request.body = std::make_unique<std::string>(bytes);
    upstream.send(request, bytes);
  } else {
    upstream.send_only(bytes);
    unanswered_ = true;
  }
  wait_if_full(upstream);
}

void Client::wait_if_full(const Upstream& upstream) {
  if (upstream.is_full() && !closed()) wait_for_room(Pause::server);
}

void Client::scatter(Words words, std::string_view bytes, const Plan& plan) {
  if (plan.route == Route::homes && plan.keys.size() == 1) return forward(words, bytes, plan);
  if (gather(*this, words, bytes, plan) && !closed()) wait_for_room(Pause::server);
}

Request& Client::enqueue(const Plan& plan) {
  Request& request = loop_.requests().make();
  request.receiver = this;
  request.command = plan.command;
  request.read_only = plan.read_only;
  request.quiet = reply_mode_.is_muted() ? Quiet::all : plan.quiet;
  request.expected = expected_;
  queue_.push(request);
  return request;
}

void Client::answer(std::string_view reply) {
  if (reply_mode_.is_muted()) return;
  if (queue_.empty()) return write(reply);
  park(enqueue({}), reply);
}

void Client::answer(Failure failure) { answer(pool_.protocol().reply_for(failure)); }

void Client::last_word(const Plan& plan) {
  (plan.is_wish ? pool_.counters().client_eof : pool_.counters().client_err).add();
  if (plan.drop_pending && plan.reply.empty()) return close();
  if (!plan.reply.empty()) answer(plan.reply);
  close_later();
}

void Client::replied(Request& request, std::string_view reply) {
  if (reply.starts_with('-') && session_ && session_->heal(request, reply)) return;
  if (request.quiet != Quiet::no && is_silent(request.quiet, reply)) reply = "";
  // Before this reply is added: a single reply, however long, closes no client.
  if (!state_.drops_replies() &&
      unsent() + parked_ > pool_.settings().client_output_limit * out_of_bounds)
    overflow();
  if (state_.drops_replies()) reply = "";
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(reply.size(), UINT32_MAX));
  expected_ = size >= expected_ ? size : expected_ - (expected_ - size) / expectation_sinks;
  if (queue_.head() != &request) return park(request, reply);
  pass_on(reply);
  release_answered();
}

/// The pool closes the client at the end of the turn, not now: the caller, who brings a reply, may
/// be a part of its session.
void Client::overflow() {
  pool_.counters().client_overflows.add();
  state_.advance(Life::discarding);
  pause();
  pool_.clients().dismiss(*this);
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

/// The reply to the head of the queue, which leaves it.
void Client::pass_on(std::string_view reply) {
  if (!reply.empty()) write(reply);
  Request& request = queue_.pop();
  const bool last = request.last;
  loop_.requests().drop(request);
  if (!last) return;
  abandon_queue();
  close_later();
}

void Client::failed(Request& request, Failure failure) {
  if (request.body && ask_again(request, failure)) return;
  pool_.counters().forward_error.add();
  replied(request, pool_.protocol().reply_for(failure));
}

/// Of the home that its keys have by now.
bool Client::ask_again(Request& request, Failure failure) {
  if (!may_ask_again(request, request, failure) || !pool_.settings().retry_reads) return false;
  const auto reader = pool_.protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return false;
  const auto plan = pool_.protocol().plan(reader->words());
  Server* const home = home_for(reader->words(), plan).server;
  if (!home) return false;
  request.retried = true;
  pool_.counters().retries.add();
  home->upstream(session_state_.mode, id_).send(request, *request.body);
  return true;
}

void Client::release_answered() {
  while (!queue_.empty() && queue_.head()->answered) {
    const auto& reply = queue_.head()->reply;
    if (reply.memory() != 0) kept_for(-static_cast<std::ptrdiff_t>(reply.memory()));
    pass_on(reply.view());
  }
  if (queue_.empty()) {
    state_.all_answered();
    if (state_.ends(false))
      loop_.flush_later(*this);  // the last reply may be muted: none is written
  }
  go_on();
}

bool Client::is_silent(Quiet quiet, std::string_view reply) const noexcept {
  return quiet == Quiet::all || pool_.protocol().is_silent(quiet, reply);
}

/// Requests at the servers cannot be called back, so what is still to come counts: as if each were
/// answered as the last ones were.
bool Client::is_too_far_ahead() const noexcept {
  const auto& settings = pool_.settings();
  if (!session_state_.logged_in && unsent() + parked_ > most_for_strangers) return true;
  return unsent() + parked_ + queue_.size() * expected_ >
             settings.client_output_limit + expected_ ||
         queue_.size() >= settings.client_pending_limit ||
         (!loop_.blocks().has_room() && !is_modest());
}

/// Nothing is under way, and next to nothing is kept: served also when memory is short, one request
/// at a time, so that clients that take all memory delay no other.
bool Client::is_modest() const noexcept {
  return queue_.empty() && unsent() + parked_ <= BlockPool::block;
}

void Client::wait_for_room(Pause reason) {
  pause_for(reason);
  if (!std::exchange(is_listed_, true)) pool_.clients().wait_for_room(*this);
}

void Client::there_is_room() {
  is_listed_ = false;
  state_.end(Pause::server);
  go_on();
}

void Client::go_on() {
  if (closed() || !paused() || state_.is_closing()) return;
  if (is_too_far_ahead()) return wait_for_room();
  state_.end(Pause::room);
  if (state_.reads()) resume();
}

void Client::ended(int error) {
  auto& counters = pool_.counters();
  (error == 0 ? counters.client_eof : counters.client_err).add();
  if (error == 0 && (!queue_.empty() || unsent() != 0)) return close_later();  // it may still read
  close();
}

}  // namespace sluice::proxy::flow
