// SUBSCRIBE and its like, and what else a subscribed client may ask.
#include <fmt/format.h>

#include <algorithm>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/subscription.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

struct SubscribeVerbs {
  SessionVerb begin, end;
  Subscriptions::Kind kind;
};
constexpr SubscribeVerbs subscribe_verbs[] = {
    {SessionVerb::subscribe, SessionVerb::unsubscribe, Subscriptions::Kind::channel},
    {SessionVerb::psubscribe, SessionVerb::punsubscribe, Subscriptions::Kind::pattern},
    {SessionVerb::ssubscribe, SessionVerb::sunsubscribe, Subscriptions::Kind::sharded},
};

const SubscribeVerbs* find(SessionVerb verb) noexcept {
  const auto* const found = std::ranges::find_if(
      subscribe_verbs,
      [verb](const SubscribeVerbs& row) { return row.begin == verb || row.end == verb; });
  return found == std::end(subscribe_verbs) ? nullptr : found;
}

}  // namespace

Subscriptions& ClientSession::subscriptions() {
  if (!subscriptions_) subscriptions_ = std::make_unique<Subscriptions>(client_, pool());
  return *subscriptions_;
}

bool ClientSession::is_subscribed() const noexcept {
  return subscriptions_ && !subscriptions_->is_over();
}

void ClientSession::subscribe(Words words, std::string_view, const Plan& plan) {
  subscriptions().subscribe(find(plan.verb)->kind, words.subspan(1));
}

void ClientSession::unsubscribe(Words words, std::string_view, const Plan& plan) {
  subscriptions().unsubscribe(find(plan.verb)->kind, words.subspan(1));
}

/// A subscribed client cannot tell a reply from a message in RESP2, so it may ask little.
bool ClientSession::is_confined(Words words, const Plan& plan) {
  if (subscriptions_ && subscriptions_->is_over()) subscriptions_.reset();
  if (!subscriptions_ || client_.mode().resp == 3 || plan.route == Route::refused) return false;
  if (plan.route == Route::session && (find(plan.verb) || plan.verb == SessionVerb::reset))
    return false;
  std::string reply;
  resp::ReplyWriter writer{reply};
  if (plan.route == Route::local && resp::is_word(words[0], "ping") && words.size() <= 2) {
    writer.array(2);
    writer.bulk("pong");
    writer.bulk(words.size() == 2 ? words[1] : std::string_view{});
  } else {
    writer.error(fmt::format(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        pool().protocol().command_name(plan.command)));
  }
  answer(reply);
  return true;
}

}  // namespace sluice::proxy::flow
