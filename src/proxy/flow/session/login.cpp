// Who a client is: AUTH and HELLO, and what its user may not do.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sha256.hpp"
#include "front/hello.hpp"
#include "net/socket.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/transaction.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

/// Of a request that is refused anyway only whether the user may run the command.
front::Denied check(front::Rights& rights, Words words, const Plan& plan) {
  using front::Denied;
  if (plan.command == resp::all_commands().size()) return Denied::nothing;  // nobody knows it
  const auto& spec = rights.spec_at(plan.command);
  if (!spec.arity_fits(words.size())) return Denied::nothing;
  const auto denied = rights.check(spec, words);
  return plan.route == Route::refused && denied != Denied::command ? Denied::nothing : denied;
}

std::string error(std::string_view text) {
  std::string reply;
  resp::ReplyWriter{reply}.error(text);
  return reply;
}

}  // namespace

bool ClientSession::log_in(std::string_view user, std::string_view password) {
  const auto known = pool().settings().find_user(user);
  // Where nobody has to log in the default user has no password: any will do.
  if (!known ||
      (pool().wants_login() && !equal_in_constant_time(sha256(password), sha256(known->password))))
    return false;
  auto state = client_.session_state();
  state.logged_in = true;
  state.read_only = known->read_only;
  state.rights = pool().protocol().rights_of(user);
  words_.keep("user", user);
  client_.set_session_state(state);
  return true;
}

/// At once, unless there have been failures from this connection or this address of late: then the
/// answer, right or wrong, waits, and with it what the client asks next.
void ClientSession::answer_login(std::string_view reply) {
  auto& throttle = pool().shared().logins;
  const auto from = net::origin_of(client_.descriptor());
  const auto now = pool().loop().now();
  if (reply.front() == '-') {
    throttle.note_failure(from, now);
    if (failed_logins_ < UINT8_MAX) ++failed_logins_;
  }
  const auto wait =
      std::max(throttle.wait_of(from, now), front::LoginThrottle::wait_for(failed_logins_));
  if (wait.count() == 0) return answer(reply);
  delayed_ = &client_.enqueue({});
  client_.hold();
  delay_ = pool().loop().after(wait, [this, text = std::string{reply}] {
    Request& request = *std::exchange(delayed_, nullptr);
    if (request.receiver)
      client_.replied(request, text);
    else
      pool().requests().drop(request);
    client_.release();
  });
}

void ClientSession::auth(Words words, std::string_view, const Plan& plan) {
  if (pool().is_strict()) {
    if (!pool().wants_login()) return answer(plan.reply);  // there is nothing to guess
    auto state = client_.session_state();
    state.logged_in = plan.reply.starts_with('+');
    client_.set_session_state(state);
    return answer_login(plan.reply);
  }
  if (words.size() > 3) return answer("-ERR syntax error\r\n");
  if (words.size() == 2 && !pool().wants_login()) return answer(error(front::no_password_wanted));
  const bool right = log_in(words.size() == 3 ? words[1] : default_user, words.back());
  answer_login(right ? "+OK\r\n" : error(front::wrong_password));
}

void ClientSession::hello(Words words, std::string_view, const Plan&) {
  const auto hello = front::read_hello(words);
  if (!hello.error.empty()) return answer(error(hello.error));
  if (hello.login && !log_in(hello.login->first, hello.login->second))
    return answer_login(error(front::wrong_password));
  if (!client_.session_state().logged_in) return answer(error(front::hello_without_login));
  if (hello.name)
    if (const auto refused = words_.take("name", *hello.name); !refused.empty())
      return answer(error(refused));
  if (hello.protocol) client_.mode().resp = *hello.protocol;
  std::string reply;
  append_greeting(reply);
  hello.login ? answer_login(reply) : answer(reply);
}

void ClientSession::append_greeting(std::string& out) const {
  resp::ReplyWriter writer{out, client_.mode().resp};
  writer.map(7);
  writer.items("server", "sluice", "version", SLUICE_VERSION, "proto", client_.mode().resp, "id",
               client_.id(), "mode", "proxy", "role", "master", "modules");
  writer.array(0);
}

/// A user who may only read may run what the table of commands calls readonly, and what touches no
/// key.
bool ClientSession::may_read_only(Words words, const Plan& plan) const {
  if (plan.read_only) return true;
  switch (plan.route) {
    case Route::local:
    case Route::refused:
    case Route::close: return true;
    case Route::session: return is_harmless(plan.verb);
    case Route::any: break;
    default: return false;
  }
  const auto* const spec =
      resp::find_command(words);  // a script without keys may write all the same
  return spec != nullptr && spec->first_key == 0 && spec->rule == resp::KeyRule::none &&
         !spec->has(resp::flag_write) && !spec->has(resp::flag_admin);
}

front::Denied ClientSession::denied(Words words, const Plan& plan) const {
  const auto& state = client_.session_state();
  if (state.read_only && !may_read_only(words, plan)) return front::Denied::command;
  return state.rights ? check(*state.rights, words, plan) : front::Denied::nothing;
}

/// A transaction of which a part is denied is not done; EXEC itself, denied, ends it.
void ClientSession::deny(front::Denied denied, Words words, const Plan& plan) {
  const auto* const spec = resp::find_command(words);  // null: the setting `commands` knows it
  if (is_in_transaction()) {
    transaction_->spoil();
    if (plan.verb == SessionVerb::exec) {
      if (!client_.is_next()) return client_.postpone();
      transaction_.reset();
    }
  }
  answer(error(front::refusal_of(denied, spec != nullptr ? spec->name : words[0])));
}

}  // namespace sluice::proxy::flow
