#include "proxy/flow/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/rate_limit.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "resp/replica_reads.hpp"
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

constexpr std::string_view unserved_slot = "-CLUSTERDOWN Hash slot not served\r\n";  // as Redis
constexpr std::string_view no_map =
    "-CLUSTERDOWN no node of the cluster has said yet which of them has which slot\r\n";

constexpr std::string_view proxy_ends = "the proxy ends: ask again on another connection";

// A read is kept, to be asked again, while it and the client's queue are no larger than this.
constexpr std::size_t most_kept_size = std::size_t{16} << 10;
constexpr std::size_t most_kept = 1024;

// Bytes of replies that a client may leave untaken before it has logged in: as in Redis.
constexpr std::size_t most_for_strangers = 1024;

}  // namespace

Client::Client(Pool& pool, std::unique_ptr<net::Transport> transport, std::uint64_t id,
               std::size_t place)
    : loop::Stream(pool.loop()),
      pool_(pool),
      id_(id),
      expected_(expected_at_first),
      place_(static_cast<std::uint32_t>(place)),
      last_active_(pool.loop().now()),
      stranger_since_(last_active_),
      session_state_(pool.newcomer()) {
  attach(std::move(transport));
  take_limits();
}

Client::~Client() = default;

ClientLimits* Client::limits() const noexcept { return session_ ? session_->limits() : nullptr; }

/// Those of its address, and of its user once it has logged in.
void Client::take_limits() {
  if (is_mirror_) return;
  if (!ClientLimits::are_needed(pool_.settings())) {
    if (session_) session_->set_limits(nullptr);
    return;
  }
  if (!limits())
    session().set_limits(
        std::make_unique<ClientLimits>(pool_.shared().rates, net::network_of(descriptor())));
  limits()->apply(pool_.settings(), session_state_.logged_in ? user() : std::string_view{});
}

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
    if (request.mirrored && !request.answered && pool_.mirror())
      pool_.mirror()->given_up(request.mirror);
    if (request.answered)
      pool_.requests().drop(request);
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

void Client::trust() noexcept {
  is_mirror_ = true;
  session_state_.logged_in = true;
  expected_ = 0;
  if (session_) session_->set_limits(nullptr);
}

void Client::end_wait_for_keys() {
  state_.end(Pause::keys);
  go_on();
}

void Client::finish_earlier() {
  if (!queue_.empty()) pause_for(Pause::earlier);
}

std::uint64_t Client::detoured() {
  finish_earlier();
  return id_;
}

void Client::apply(const PoolSettings& before) {
  finish_earlier();
  if (session_ && pool_.settings().move != before.move) session_->note_move();
  const auto& settings = pool_.settings();
  if (is_mirror_) return;  // it chooses each database itself
  auto state = session_state_;
  if (!state.has_chosen_db) state.mode.db = settings.redis_db;
  if (session_ && state.mode.db != session_state_.mode.db)
    session_->revoke("the database of this pool has changed");
  set_rights(state, before.wants_login());
}

/// Of its user by the settings as they are. `wanted_login`: those by which it has come to `state`.
void Client::set_rights(SessionState state, bool wanted_login) {
  const auto& settings = pool_.settings();
  const auto its_user = settings.find_user(user());
  state.read_only = its_user && its_user->read_only;
  state.rights = its_user ? pool_.protocol().rights_of(its_user->name) : nullptr;
  state.logged_in =
      !settings.wants_login() || (wanted_login && state.logged_in && its_user.has_value());
  const bool leaves = session_state_.logged_in && !state.logged_in;
  const auto* const rights = session_state_.rights;
  const bool is_narrowed = (state.read_only && !session_state_.read_only) ||
                           (state.rights && !(rights && state.rights->covers(*rights)));
  if (session_ && (leaves || is_narrowed)) session_->revoke("what this user may do has changed");
  if (session_ && is_narrowed && state.rights) session_->check_subscriptions(*state.rights);
  set_session_state(state);
  take_limits();
  pool_.clients().end_delay(*this);  // for what it has paid by the limits before
  if (leaves) close_later();
}

void Client::set_session_state(const SessionState& state) noexcept {
  if (session_state_.logged_in && !state.logged_in) stranger_since_ = loop_.now();
  session_state_ = state;
  if (limits()) take_limits();
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
  if (is_modest() && memory() <= loop::BlockPool::block) return false;
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
      if (state_.is_postponed()) {
        if (auto* const by = limits()) by->note_paid();
        break;
      }
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
  if (!plan.read_only && plan.route != Route::local) has_written_ = true;
  if (plan.route == Route::refused && is_http(words)) return turn_away_http();
  if (limits() && !is_within_limits(plan, bytes.size())) return;
  if (is_refused(plan, words)) return rest_if_ahead();
  if (pool_.servers().has_full() && meets_full_server(words, plan))
    return wait_for_room(Pause::server);
  // What a replica lacks the master is asked, and has not done by then what was sent behind it.
  if (reads_at_replica_ && !plan.read_only && plan.route != Route::local) return postpone();
  if (pool_.settings().move && !has_keys_at_home(words, bytes, plan)) [[unlikely]]
    return;
  if (pool_.mirror()) [[unlikely]]
    serve_and_mirror(plan, words, bytes);
  else if (!is_intercepted(plan, words, bytes))
    serve(plan, words, bytes);
  rest_if_ahead();
}

void Client::rest_if_ahead() {
  if (!closed() && state_.reads() && is_too_far_ahead()) wait_for_room();
}

/// False: the request waits for keys that move, or was refused because they do.
bool Client::has_keys_at_home(Words words, std::string_view bytes, const Plan& plan) {
  return !session_state_.logged_in || session().has_keys_at_home(words, bytes, plan);
}

/// Whether its user may not ask that. Nothing else answers before, and no server is asked.
bool Client::is_refused(const Plan& plan, Words words) {
  return is_watched() && plan.route != Route::close && session().refuses(words, plan);
}

/// Whether its session has queued the request.
bool Client::is_intercepted(const Plan& plan, Words words, std::string_view bytes) {
  return session_ && plan.route != Route::close && session_->queues(words, bytes, plan);
}

/// What was sent to a server of the pool is sent to the mirror, too: not what was refused, or waits
/// for its turn. A transaction sees to itself.
void Client::serve_and_mirror(const Plan& plan, Words words, std::string_view bytes) {
  using enum Effect::Kind;
  const auto effect = pool_.protocol().effect_of(plan, words);
  const bool is_alone = !session_ || !session_->is_in_transaction();
  const bool is_wanted =
      is_alone && effect.kind != none && (effect.kind != read || pool_.settings().mirror.reads);
  const auto key = first_key(words, plan);
  const std::string kept{plan.forward};  // the next plan would take its place
  const Request* const before = queue_.tail();
  if (!is_intercepted(plan, words, bytes)) serve(plan, words, bytes);
  if (!is_wanted || closed() || state_.is_postponed()) return;
  Request* const sent = queue_.tail();
  const bool is_sent = sent != nullptr && sent != before && !sent->answered;
  Mirror& mirror = *pool_.mirror();
  if (plan.expects_reply != is_sent || !mirror.is_sampled(key)) return;
  if (effect.kind == single) return pool_.counters().mirror_skipped.add();
  const auto script = as_eval(pool_, words, plan);
  const auto form = !script.empty() ? std::string_view{script}
                    : !kept.empty() ? std::string_view{kept}
                                    : bytes;
  const auto number = mirror.send(session_state_.mode, form, plan, key, effect.alike);
  if (!is_sent || number == 0) return;
  sent->mirrored = true;
  sent->mirror = number;
}

void Client::tell_mirror(Request& request, std::string_view reply) {
  request.mirrored = false;
  if (pool_.mirror()) pool_.mirror()->replied(request.mirror, reply);
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

/// False: the request has been refused, or waits. What ends something is never refused; what says
/// how the next requests are meant waits, or would leave them to be done as they are not meant.
bool Client::is_within_limits(const Plan& plan, std::size_t bytes) {
  if (limits()->was_paid()) return true;
  const bool in_transaction = session_ && session_->is_in_transaction();
  if (plan.route == Route::close) return true;
  if (in_transaction && (plan.verb == SessionVerb::exec || plan.verb == SessionVerb::discard))
    return true;
  const bool steers =
      session_state_.logged_in && plan.route == Route::session && ClientSession::steers(plan.verb);
  const bool waits = pool_.settings().rate_limit.action == LimitAction::delay || steers;
  const auto wait = limits()->take({std::max<std::size_t>(plan.keys.size(), 1), bytes}, loop_.now(),
                                   waits ? TokenBucket::longest_wait : std::chrono::seconds{0});
  if (wait == std::chrono::nanoseconds{0}) return true;
  if (wait) {
    pool_.counters().delayed_requests.add();
    pause_for(Pause::rate);
    pool_.clients().delay(*this, *wait);
    return false;
  }
  pool_.counters().limited_requests.add();
  tell_limited();
  if (in_transaction) session_->spoil();
  if (plan.expects_reply) answer(Failure::limited);
  if (steers) close_later();
  return false;
}

void Client::tell_limited() {
  if (pool_.limit_told().is_due(loop_.now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': requests from {} ({}) are refused, because they are beyond "
                    "rate_limit; so were {} so far",
                    pool_.settings().name, peer(),
                    session_state_.logged_in ? fmt::format("user '{}'", watch::excerpt(user()))
                                             : "not logged in",
                    pool_.counters().limited_requests.get()));
}

void Client::end_delay() {
  state_.end(Pause::rate);
  go_on();
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
  return queue_.empty() && unsent() == 0 && !state_.has(Pause::session) && !state_.is_postponed() &&
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
  if (!plan.expects_reply) return nullptr;
  if (home.failure == Failure::refused && pool_.settings().is_of_cluster())
    answer(pool_.servers().size() == 0 ? no_map : unserved_slot);
  else
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
      if (!pool_.servers().have_one_home(key, words[position])) return {nullptr, Failure::crossed};
  return {home, Failure::refused};
}

/// Whether a connection that the request would go over has more to send than its server takes.
/// However many clients there are, and however often they come again, no more is kept for it.
bool Client::meets_full_server(Words words, const Plan& plan) const {
  if (!session_state_.logged_in) return false;
  if (pool_.servers().awaits_map()) return plan.route != Route::local;
  if (session_ && session_->is_in_transaction()) return session_->meets_full_server();
  const auto is_full = [this](Server* server) {
    return server && server->upstream(session_state_.mode, id_).is_full();
  };
  const auto is_full_home = [&](std::string_view key) {
    return is_full(pool_.servers().home_of(key));
  };
  switch (plan.route) {
    case Route::one:
    case Route::homes:
    case Route::any:
    case Route::session: break;
    case Route::every:
      return std::ranges::any_of(pool_.servers(), [&](const auto& one) { return is_full(&*one); });
    default: return false;
  }
  if (!plan.routing_key.empty()) return is_full_home(plan.routing_key);
  if (plan.keys.empty()) return plan.route != Route::session && is_full_home(any_key);
  return std::ranges::any_of(plan.keys, [&](std::size_t at) { return is_full_home(words[at]); });
}

/// Whether its bytes are kept, so that it can be asked again.
bool Client::is_worth_keeping(const Plan& plan, std::size_t size) const noexcept {
  return ((plan.read_only && pool_.settings().retry_reads) || plan.verb == SessionVerb::evalsha) &&
         size <= most_kept_size && queue_.size() <= most_kept;
}

bool Client::may_read_from_replica(const Plan& plan) const {
  if (!plan.read_only || plan.verb != SessionVerb::none || plan.keys.empty() || !plan.expects_reply)
    return false;
  const auto table = resp::all_commands();
  const bool is_sharded = pool_.settings().is_of_cluster();
  // What it was taught: nobody knows what that says of a key that is absent.
  if (plan.command >= table.size())
    return !is_sharded && !pool_.protocol().command_name(plan.command).ends_with("scan");
  const auto& spec = table[plan.command];
  const bool is_script = spec.has(resp::flag_noscript);
  return !is_script && resp::may_read_from_replica(spec, plan.keys.size(), is_sharded);
}

/// Null: it is asked of the master, its home.
Server* Client::replica_for(const Server& home, std::size_t size, const Plan& plan) {
  if (!may_read_from_replica(plan) || size > most_kept_size || queue_.size() > most_kept ||
      pool_.mirror() || pool_.settings().move || (session_ && session_->watches()))
    return nullptr;
  auto as_of = SteadyTime::min();
  if (pool_.settings().read_your_writes) {
    if (has_written_ && !queue_.empty()) return nullptr;
    if (std::exchange(has_written_, false)) last_write_ = loop_.clock().steady();
    as_of = last_write_;
  }
  return pool_.servers().replica_of(home, as_of, session_state_.mode, id_);
}

void Client::send(Server& home, Words words, std::string_view bytes, const Plan& plan) {
  if (!plan.keys.empty()) pool_.note_key(words[plan.keys.front()]);
  Server* const replica = pool_.settings().read_from == ReadFrom::replica
                              ? replica_for(home, bytes.size(), plan)
                              : nullptr;
  Upstream& upstream = (replica ? *replica : home).upstream(session_state_.mode, id_);
  if (plan.expects_reply) {
    Request& request = enqueue(plan);
    if (!plan.keys.empty()) note_key(request, words[plan.keys.front()]);
    request.detours = pool_.settings().sends_again() && !replica;
    request.at_replica = replica != nullptr;
    reads_at_replica_ |= replica && pool_.settings().is_of_cluster();
    if (replica || is_worth_keeping(plan, bytes.size()))
      request.body = std::make_unique<std::string>(bytes);
    upstream.send(request, bytes);
  } else {
    upstream.send_only(bytes);
    unanswered_ = true;
  }
}

void Client::scatter(Words words, std::string_view bytes, const Plan& plan) {
  if (plan.route == Route::homes && plan.keys.size() == 1) return forward(words, bytes, plan);
  gather(*this, words, bytes, plan);
}

Request& Client::enqueue(const Plan& plan) {
  Request& request = pool_.requests().make();
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

/// What its replica has not answered, or has refused. Replies keep their order; what the client
/// asks from now on comes behind it.
bool Client::ask_master(Request& request) {
  request.at_replica = false;
  const auto reader = pool_.protocol().request_reader();
  if (closed() || reader->read(*request.body) != RequestReader::State::complete) return false;
  Server* const home = home_for(reader->words(), pool_.protocol().plan(reader->words())).server;
  if (!home) return false;
  pool_.counters().retries.add();
  request.detours = pool_.settings().sends_again();
  finish_earlier();
  home->upstream(session_state_.mode, id_).send(request, *request.body);
  return true;
}

/// In a cluster a key that is absent at a replica may have moved.
bool Client::is_enough(std::string_view reply_of_replica) const {
  return !reply_of_replica.starts_with('-') &&
         (!pool_.settings().is_of_cluster() || resp::proves_presence(reply_of_replica));
}

void Client::replied(Request& request, std::string_view reply) {
  if (request.at_replica && !is_enough(reply)) {
    if (ask_master(request)) return;
    if (!reply.starts_with('-')) reply = unserved_slot;
  }
  if (reply.starts_with('-') && session_ && session_->heal(request, reply)) return;
  if (request.mirrored) [[unlikely]]
    tell_mirror(request, reply);
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
  pool_.requests().drop(request);
  if (!last) return;
  abandon_queue();
  close_later();
}

void Client::failed(Request& request, Failure failure) {
  if (request.at_replica && ask_master(request)) return;
  if (request.body && ask_again(request, failure)) return;
  pool_.counters().forward_error.add();
  replied(request, pool_.protocol().reply_for(failure));
}

bool Client::may_go_again(Words words, const Plan& plan) const {
  return !pool_.settings().move || std::ranges::none_of(plan.keys, [&](std::size_t at) {
    return pool_.servers().elsewhere(words[at]) != nullptr;
  });
}

/// Of the home that its keys have by now.
bool Client::ask_again(Request& request, Failure failure) {
  const auto& settings = pool_.settings();
  const bool is_wanted = settings.retry_reads || settings.is_of_cluster();
  if (!is_wanted || !may_ask_again(request, request, failure)) return false;
  const auto reader = pool_.protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return false;
  const auto plan = pool_.protocol().plan(reader->words());
  if (!may_go_again(reader->words(), plan)) return false;
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
    reads_at_replica_ = false;
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
  return queue_.empty() && unsent() + parked_ <= loop::BlockPool::block;
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

void Client::unpause() {
  if (closed() || state_.is_closing()) return;
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
