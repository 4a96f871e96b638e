#include "proxy/flow/session/transaction.hpp"

#include <utility>

#include "base/hash_slot.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "proxy/flow/session/session.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::string_view multi_bytes = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view unwatch_bytes = "*1\r\n$7\r\nUNWATCH\r\n";

constexpr std::string_view ok = "+OK\r\n";
constexpr std::string_view queued_reply = "+QUEUED\r\n";
constexpr std::string_view aborted =
    "-EXECABORT Transaction discarded because of previous errors.\r\n";
constexpr std::string_view aborted_by_loss =
    "-EXECABORT Transaction discarded because the connection to its server was lost: nothing of it "
    "was done\r\n";
constexpr std::string_view aborted_by_move =
    "-EXECABORT Transaction discarded because its keys have moved to another node: nothing of it "
    "was done\r\n";
constexpr std::string_view lost_connection =
    "-ERR the connection to the server of this transaction was lost\r\n";
constexpr std::string_view unknown_outcome =
    "-ERR the connection to the server was lost during EXEC: the transaction was done wholly or "
    "not at all, and the proxy cannot know which\r\n";
constexpr std::string_view cannot_be_queued =
    "-ERR this command cannot be part of a transaction behind a proxy: it is not for the one "
    "server of the transaction\r\n";
constexpr std::string_view too_many_early =
    "-ERR too much in the transaction before its first key: begin it with a command that has "
    "one\r\n";

constexpr std::string_view aborted_by_ring =
    "-EXECABORT Transaction discarded because a key of it has another home now: nothing of it was "
    "done\r\n";

constexpr std::size_t most_keys = 1000;                   // that are remembered
constexpr std::size_t most_early = std::size_t{1} << 20;  // bytes of commands without a home

bool can_be_queued(const Pool& pool, const Plan& plan) {
  if (plan.route == Route::session)
    return plan.verb == SessionVerb::blocking || plan.verb == SessionVerb::evalsha ||
           plan.verb == SessionVerb::unwatch;
  return plan.route != Route::every || pool.servers().size() == 1;
}

}  // namespace

bool is_lost_transaction(std::string_view reply) noexcept {
  return reply == aborted_by_loss || reply == lost_connection || reply == unknown_outcome;
}

Transaction::Transaction(Client& client, std::unique_ptr<Transaction>& self)
    : client_(client), self_(self) {}

Transaction::~Transaction() {
  for (const auto& waiting : std::exchange(waiting_, {})) drop(*waiting.request);
  second_.reset();
  connection_.reset();
}

void Transaction::begin() {
  if (state_.is_open()) return client_.answer("-ERR MULTI calls can not be nested\r\n");
  state_.advance(Phase::open);
  client_.answer(ok);
}

void Transaction::refuse(std::string_view reply) {
  spoil();
  client_.answer(reply);
}

void Transaction::queue(Words words, std::string_view bytes, const Plan& plan) {
  if (plan.route == Route::refused) return refuse(plan.reply);
  if (!can_be_queued(client_.pool(), plan)) return refuse(cannot_be_queued);
  notice_loss();
  if (state_.is_lost()) return refuse(lost_connection);
  Server* home = nullptr;
  if (!plan.keys.empty() && !(home = home_of(words, plan))) return spoil();
  if (state_.is_spoiled()) return client_.answer(queued_reply);
  ++queued_count_;
  if (client_.pool().mirror()) keep_for_mirror(words, bytes, plan);
  if (!home && !connection_) return queue_early(bytes);
  if (!has_connection(connection_ ? connection_.server() : *home)) return;
  if (plan.verb == SessionVerb::evalsha) load_script(words[1]);
  if (!state_.is_sent() && !state_.is_lost()) open();
  if (state_.is_lost()) return refuse(lost_connection);
  Request& request = of_client(plan, queued);
  if (!plan.keys.empty()) {
    note_key(request, words[plan.keys.front()]);
    if (client_.pool().settings().is_of_cluster()) slot_ = hash_slot(words[plan.keys.front()]);
  }
  send(request, bytes);
}

/// What is then refused spoils the transaction: nothing of it is mirrored.
void Transaction::keep_for_mirror(Words words, std::string_view bytes, const Plan& plan) {
  auto& pool = client_.pool();
  using enum Effect::Kind;
  const auto effect = pool.protocol().effect_of(plan, words);
  const auto script = as_eval(pool, words, plan);
  const auto form = script.empty() ? bytes : std::string_view{script};
  ++body_.requests;
  body_.writes |= effect.kind == write || effect.kind == single;  // it waits for nothing in MULTI
  body_.alike &= effect.alike;
  if (body_.key.empty()) body_.key = first_key(words, plan);
  body_.too_large |= body_.bytes.size() + form.size() > pool.mirror()->limit();
  if (body_.too_large)
    body_.bytes = {};
  else
    body_.bytes += form;
}

/// A transaction that was done is said again as a whole.
void Transaction::mirror(const Request& exec, std::string_view reply) {
  auto* const mirror = client_.pool().mirror();
  const bool is_done = reply.front() != '-' && reply != "*-1\r\n" && reply != "_\r\n";
  if (!mirror || !is_done || !(body_.writes || client_.pool().settings().mirror.reads) ||
      !mirror->is_sampled(body_.key))
    return;
  if (body_.requests != queued_count_) return client_.pool().counters().mirror_skipped.add();
  mirror->send(client_.mode(), body_, exec.command, reply);
}

void Transaction::queue_early(std::string_view bytes) {
  if (early_.size() + bytes.size() > most_early) return refuse(too_many_early);
  early_ += bytes;
  ++early_count_;
  client_.answer(queued_reply);
}

/// The one home of these keys, which must be that of the transaction if it has one. Null: the
/// client has been told why.
Server* Transaction::home_of(Words words, const Plan& plan) {
  auto& pool = client_.pool();
  pool.note_key(words[plan.keys.front()]);
  Server* const ours = connection_ ? &connection_.server() : nullptr;
  if (ours && pool.settings().distribution == Distribution::random)
    return ours;  // any server will do
  Server* const home = client_.home_or_answer(words, plan);
  if (!home || !ours || (home == ours && is_in_its_slot(words[plan.keys.front()]))) {
    if (home) note_keys(words, plan);
    return home;
  }
  pool.counters().crossed_requests.add();
  client_.answer(Failure::crossed);
  return nullptr;
}

void Transaction::note_keys(Words words, const Plan& plan) {
  if (keys_.empty()) rings_ = client_.pool().servers().rings();
  for (const auto at : plan.keys)
    if (keys_.size() < most_keys) keys_.emplace_back(words[at]);
}

/// The server it is at is not asked for these keys any more: what it did there, nobody would see.
bool Transaction::has_left_home() const {
  auto& servers = client_.pool().servers();
  if (!connection_ || keys_.empty()) return false;
  return servers.have_left(connection_.server(), keys_) ||
         (keys_.size() == most_keys && rings_ != servers.rings());
}

/// EXEC would be refused for keys of two slots.
bool Transaction::is_in_its_slot(std::string_view key) {
  if (!client_.pool().settings().is_of_cluster() || !is_open()) return true;
  const auto slot = hash_slot(key);
  return slot_.value_or(slot) == slot;
}

/// One in the client's mode. False: there are too many, and the client has been told so.
bool Transaction::has_connection(Server& home) {
  if (!connection_) {
    connection_ = client_.borrow(home, client_.mode());
  } else if (!state_.is_sent()) {
    connection_.adopt(client_.mode());
    notice_loss();
  }
  if (!connection_)
    refuse(state_.is_lost() ? std::string{lost_connection}
                            : client_.pool().protocol().reply_for(Failure::overloaded));
  return static_cast<bool>(connection_);
}

void Transaction::open() {
  state_.advance(Phase::sent);
  send(ours(opening), multi_bytes);
  if (!state_.is_lost()) wait_for(Wait::readiness);
  for (std::uint32_t i = 0; i < early_count_ && !state_.is_lost(); ++i)
    send(ours(early), i == 0 ? std::string_view{early_} : std::string_view{});
  early_ = {};
}

void Transaction::load_script(std::string_view sha) {
  state_.use_scripts();
  const auto bytes = script_load_for(client_.pool(), *connection_, sha);
  if (bytes.empty()) return;
  if (!state_.is_sent()) {
    connection_->send_aside(bytes);
    return notice_loss();
  }
  second_ = client_.borrow(connection_.server(), client_.mode());
  if (!second_) return;  // EXEC then tells NOSCRIPT
  wait_for(Wait::readiness);
  second_->send(ours(loading), bytes);
}

void Transaction::drop(Request& request) { client_.pool().requests().drop(request); }

Request& Transaction::ours(Role role) {
  Request& request = client_.pool().requests().make();
  request.receiver = this;
  request.place = role;
  return request;
}

Request& Transaction::of_client(const Plan& plan, Role role) {
  Request& request = client_.enqueue(plan);
  request.receiver = this;
  request.place = role;
  return request;
}

/// May lose the connection; with the last request, `this` may be destroyed.
void Transaction::send(Request& request, std::string_view bytes) {
  if (state_.waits_for(Wait::readiness))
    waiting_.push_back({&request, std::string{bytes}});
  else
    connection_->send(request, bytes);
}

void Transaction::watch(Words words, std::string_view bytes, const Plan& plan) {
  if (state_.is_open()) return client_.answer("-ERR WATCH inside MULTI is not allowed\r\n");
  notice_loss();
  if (state_.is_lost()) {
    client_.answer(lost_connection);
    return end(false);
  }
  Server* const home = home_of(words, plan);
  if (!home) return connection_ ? void() : end(false);
  if (!connection_ && bytes.size() <= Detours::most_kept) first_watch_ = bytes;
  if (!has_connection(*home)) return end(false);
  finish(bytes, plan, watching);
}

void Transaction::unwatch(std::string_view bytes, const Plan& plan) {
  if (connection_ && !connection_.is_lost()) return finish(bytes, plan, discarding);
  client_.answer(ok);
  end(false);
}

void Transaction::exec(std::string_view bytes, const Plan& plan) {
  notice_loss();
  if (!state_.is_spoiled() && has_left_home()) {
    if (!client_.is_next()) return client_.postpone();
    client_.answer(aborted_by_ring);
    return end(false);
  }
  if (!state_.is_spoiled() && !state_.is_sent() && (connection_ || early_count_ != 0)) {
    Server* const home =
        connection_ ? &connection_.server() : client_.pool().servers().home_of(any_key);
    if (!home)
      state_.suffer(Fault::lost);
    else if (has_connection(*home))
      open();
    else
      return end(false);
  }
  if (state_.is_spoiled()) {
    if (!client_.is_next()) return client_.postpone();
    client_.answer(state_.is_lost() ? aborted_by_loss : aborted);
    return end(false);
  }
  if (state_.is_sent()) return finish(bytes, plan, executing);
  client_.answer("*0\r\n");
  end(false);
}

void Transaction::discard(std::string_view bytes, const Plan& plan) {
  notice_loss();
  if (connection_) return finish(state_.is_sent() ? bytes : unwatch_bytes, plan, discarding);
  if (!client_.is_next()) return client_.postpone();
  client_.answer(ok);
  end(false);
}

/// Sends the last request. The client's next requests may go over other connections, so they wait
/// for its reply.
void Transaction::finish(std::string_view bytes, const Plan& plan, Role role) {
  wait_for(Wait::outcome);
  send(of_client(plan, role), bytes);
}

void Transaction::pass(Request& request, std::string_view reply) {
  request.receiver = &client_;
  client_.replied(request, reply);
}

void Transaction::replied(Request& request, std::string_view reply) {
  switch (static_cast<Role>(request.place)) {
    case early: return drop(request);
    case opening: drop(request); return opened(reply);
    case loading:
      drop(request);
      second_.give_back();
      return send_waiting();
    case queued: return pass(request, heeded(reply));
    case watching:
      if (watch_again(request, reply)) return;
      pass(request, heeded(reply));
      return has_come(Wait::outcome);
    case executing:
      if (is_redirected(reply)) {
        heeded(reply);
        pass(request, aborted_by_move);
        return end(true);
      }
      if (state_.uses_scripts() && reply.find("-NOSCRIPT ") != std::string_view::npos)
        forget_loaded(connection_.server());
      mirror(request, reply);
      pass(request, reply);
      return end(reply.front() != '-' || reply.starts_with("-EXECABORT"));
    case discarding: pass(request, reply); return end(reply.front() != '-');
  }
}

bool Transaction::is_redirected(std::string_view reply) const {
  return client_.pool().settings().is_of_cluster() && reply.front() == '-' &&
         topology::is_refusal(reply.substr(1));
}

/// What the client is told; and who begins now, begins at the right node.
std::string Transaction::heeded(std::string_view reply) {
  if (!is_redirected(reply)) return std::string{reply};
  static_cast<void>(client_.pool().detours().course(connection_.server(), reply));
  return Detours::told(reply);
}

/// Where nothing is watched yet, nothing hangs on the connection.
bool Transaction::watch_again(Request& request, std::string_view reply) {
  const auto bytes = std::exchange(first_watch_, {});
  if (bytes.empty() || !is_redirected(reply)) return false;
  const auto next = client_.pool().detours().course(connection_.server(), reply);
  if (!next.to || next.asks) return false;
  auto connection = client_.borrow(*next.to, client_.mode());
  if (!connection) return false;
  connection_.give_back();
  connection_ = std::move(connection);
  connection_->send(request, bytes);
  return true;
}

void Transaction::failed(Request& request, Failure failure) {
  const auto reply = client_.pool().protocol().reply_for(failure);
  client_.pool().counters().forward_error.add();
  switch (static_cast<Role>(request.place)) {
    case early:
    case loading:
    case opening: drop(request); return lose(reply);
    case queued: pass(request, reply); return lose(reply);
    case watching: pass(request, reply); return end(false);
    case executing: pass(request, unknown_outcome); return end(false);
    case discarding:
      pass(request, ok);
      return end(false);  // the server discards with the connection
  }
}

void Transaction::opened(std::string_view reply) {
  if (reply.front() == '-') return lose(reply);
  send_waiting();
}

void Transaction::send_waiting() {
  has_come(Wait::readiness);
  for (const auto& waiting : std::exchange(waiting_, {}))  // with the last, `this` may be destroyed
    if (state_.is_lost())
      refuse_waiting(*waiting.request, lost_connection);
    else
      connection_->send(*waiting.request, waiting.bytes);
}

/// The client's next requests wait with it.
void Transaction::wait_for(Wait what) {
  state_.wait_for(what);
  client_.hold();
}

void Transaction::has_come(Wait what) {
  if (state_.has_come(what)) client_.release();
}

void Transaction::notice_loss() {
  if (connection_ && connection_.is_lost()) lose(lost_connection);
}

void Transaction::lose(std::string_view reply) {
  state_.suffer(Fault::lost);
  has_come(Wait::readiness);
  const std::string text{reply};  // not of the connection's buffer, which goes
  connection_.reset();
  for (const auto& waiting : std::exchange(waiting_, {})) refuse_waiting(*waiting.request, text);
}

/// `request` was not sent. With the last that waits, `this` may be destroyed.
void Transaction::refuse_waiting(Request& request, std::string_view reply) {
  switch (static_cast<Role>(request.place)) {
    case early: return drop(request);
    case executing: pass(request, aborted_by_loss); return end(false);
    case discarding: pass(request, ok); return end(false);
    default: return pass(request, reply);
  }
}

/// The connection is as it was before the transaction (`clean`), or it is closed.
void Transaction::end(bool clean) {
  if (clean) connection_.give_back();
  Client& client = client_;
  const bool held = state_.is_waiting();
  self_.reset();
  if (held) client.release();
}

/// MULTI, EXEC, DISCARD, WATCH and UNWATCH.
void ClientSession::transact(Words words, std::string_view bytes, const Plan& plan) {
  const bool ends = plan.verb == SessionVerb::exec || plan.verb == SessionVerb::discard;
  if (ends && !is_in_transaction())
    return answer(plan.verb == SessionVerb::exec ? "-ERR EXEC without MULTI\r\n"
                                                 : "-ERR DISCARD without MULTI\r\n");
  if (!transaction_) transaction_ = std::make_unique<Transaction>(client_, transaction_);
  switch (plan.verb) {
    case SessionVerb::exec: return transaction_->exec(bytes, plan);
    case SessionVerb::discard: return transaction_->discard(bytes, plan);
    case SessionVerb::watch: return transaction_->watch(words, bytes, plan);
    case SessionVerb::unwatch: return transaction_->unwatch(bytes, plan);
    default: return transaction_->begin();
  }
}

}  // namespace sluice::proxy::flow
