#include "proxy/flow/session/session.hpp"

#include <algorithm>

#include "base/integer.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/rate_limit.hpp"
#include "proxy/flow/session/fetch.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "proxy/flow/session/subscription.hpp"
#include "proxy/flow/session/transaction.hpp"

namespace sluice::proxy::flow {
namespace {

// No server is known to have more. How many it has only the server knows: the first request in a
// database that it does not have gets the server's own error.
constexpr int most_databases = 16384;

}  // namespace

struct ClientSession::Verb {
  SessionVerb verb;
  Serve ClientSession::*serve;
  bool waits;       ///< for the replies to earlier requests: it goes another way and would overtake
  bool harmless;    ///< a user who may only read may do it
  bool ends_queue;  ///< in a transaction it is done at once, not queued
  bool steers;      ///< it says how the next requests are meant
};

const ClientSession::Verb ClientSession::verbs[] = {
    // verb, serve, waits, harmless, ends_queue, steers
    {SessionVerb::auth, &ClientSession::auth, false, true, false, true},
    {SessionVerb::hello, &ClientSession::hello, true, true, false, true},
    {SessionVerb::select, &ClientSession::select, false, true, false, true},
    {SessionVerb::client, &ClientSession::client, false, true, false, true},
    {SessionVerb::reset, &ClientSession::reset, true, true, true, true},
    {SessionVerb::multi, &ClientSession::transact, true, true, true, true},
    {SessionVerb::exec, &ClientSession::transact, false, true, true, true},
    {SessionVerb::discard, &ClientSession::transact, false, true, true, true},
    {SessionVerb::watch, &ClientSession::transact, true, true, true, true},
    {SessionVerb::unwatch, &ClientSession::transact, true, true, false, true},
    {SessionVerb::blocking, &ClientSession::block, true, false, false, false},
    {SessionVerb::script_load, &ClientSession::script_load, false, false, false, false},
    {SessionVerb::script_flush, &ClientSession::script_flush, false, false, false, false},
    {SessionVerb::evalsha, &ClientSession::evalsha, false, false, false, false},
    {SessionVerb::scan, &ClientSession::scan, false, true, false, false},
    {SessionVerb::subscribe, &ClientSession::subscribe, true, true, false, true},
    {SessionVerb::psubscribe, &ClientSession::subscribe, true, true, false, true},
    {SessionVerb::ssubscribe, &ClientSession::subscribe, true, true, false, true},
    {SessionVerb::unsubscribe, &ClientSession::unsubscribe, true, true, false, true},
    {SessionVerb::punsubscribe, &ClientSession::unsubscribe, true, true, false, true},
    {SessionVerb::sunsubscribe, &ClientSession::unsubscribe, true, true, false, true},
};

ClientSession::ClientSession(Client& client) : client_(client) {}

ClientSession::~ClientSession() {
  if (!delayed_) return;
  pool().loop().cancel(delay_);
  pool().requests().drop(*delayed_);
}

void ClientSession::set_limits(std::unique_ptr<ClientLimits> limits) noexcept {
  limits_ = std::move(limits);
}

const ClientSession::Verb& ClientSession::row_of(SessionVerb verb) noexcept {
  static_assert(std::size(verbs) == static_cast<std::size_t>(SessionVerb::scan),
                "every verb but `none` has its row");
  return *std::ranges::find(verbs, verb, &Verb::verb);
}

bool ClientSession::is_harmless(SessionVerb verb) noexcept { return row_of(verb).harmless; }

bool ClientSession::steers(SessionVerb verb) noexcept { return row_of(verb).steers; }

bool ClientSession::watches() const noexcept { return transaction_ != nullptr; }

bool ClientSession::is_in_transaction() const noexcept {
  return transaction_ && transaction_->is_open();
}

void ClientSession::spoil() {
  if (transaction_) transaction_->spoil();
}

bool ClientSession::meets_full_server() const noexcept {
  return transaction_ && transaction_->meets_full_server();
}

void ClientSession::unblock(std::string_view why) {
  if (blocked_) blocked_->unblock(why);
}

void ClientSession::revoke(std::string_view why) {
  spoil();
  unblock(why);
}

bool ClientSession::refuses(Words words, const Plan& plan) {
  if (!client_.session_state().logged_in) {
    const bool may = plan.route == Route::session &&
                     (plan.verb == SessionVerb::auth || plan.verb == SessionVerb::hello ||
                      plan.verb == SessionVerb::reset);
    if (!may)
      answer(pool().is_strict() ? "-NOAUTH Authentication required\r\n"
                                : "-NOAUTH Authentication required.\r\n");
    return !may;
  }
  if (is_confined(words, plan)) return true;
  const auto what = denied(words, plan);
  if (what != front::Denied::nothing) deny(what, words, plan);
  return what != front::Denied::nothing;
}

bool ClientSession::queues(Words words, std::string_view bytes, const Plan& plan) {
  if (!is_in_transaction() || !client_.session_state().logged_in ||
      (plan.route == Route::session && row_of(plan.verb).ends_queue))
    return false;
  transaction_->queue(words, bytes, plan);
  return true;
}

void ClientSession::serve(Words words, std::string_view bytes, const Plan& plan) {
  const auto& row = row_of(plan.verb);
  if (row.waits && !client_.is_next()) return client_.postpone();
  (this->*row.serve)(words, bytes, plan);
}

void ClientSession::select(Words words, std::string_view, const Plan&) {
  const auto database = parse_integer<int>(words[1]);
  if (!database) return answer("-ERR value is not an integer or out of range\r\n");
  if (*database < 0 || *database >= most_databases)
    return answer("-ERR DB index is out of range\r\n");
  if (*database != 0 && pool().settings().is_of_cluster())
    return answer("-ERR SELECT is not allowed in cluster mode\r\n");
  if (*database != client_.mode().db) {
    if (!client_.is_next())
      return client_.postpone();  // requests to the new database would overtake those under way
    client_.mode().db = *database;
  }
  client_.note_chosen_db();
  answer("+OK\r\n");
}

/// As if the client had just connected.
void ClientSession::reset(Words, std::string_view, const Plan&) {
  transaction_.reset();
  subscriptions_.reset();
  words_.clear();
  client_.reply_mode().turn_on();
  client_.set_session_state(pool().newcomer());
  answer("+RESET\r\n");
}

}  // namespace sluice::proxy::flow
