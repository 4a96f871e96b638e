// Who a client is: AUTH and HELLO, and what its user may not do.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/integer.hpp"
#include "net/socket.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/transaction.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::string_view wrong_password =
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// In constant time, so that the time tells nothing of how much of the password is right.
bool is_same(std::string_view given, std::string_view secret) noexcept {
  volatile unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference =
        difference | static_cast<unsigned>(static_cast<unsigned char>(given[i] ^ expected));
  }
  return difference == 0;
}

/// What HELLO was told.
struct Hello {
  std::optional<int> protocol;
  std::optional<std::pair<std::string_view, std::string_view>> login;
  std::optional<std::string_view> name;
  std::string error;
};

Hello read_hello(Words words) {
  Hello hello;
  if (words.size() < 2) return hello;
  hello.protocol = parse_integer<int>(words[1]);
  if (!hello.protocol)
    hello.error = "-ERR Protocol version is not an integer or out of range\r\n";
  else if (*hello.protocol != 2 && *hello.protocol != 3)
    hello.error = "-NOPROTO unsupported protocol version\r\n";
  for (std::size_t at = 2; at < words.size() && hello.error.empty(); ++at) {
    const auto left = words.size() - 1 - at;
    if (resp::is_word(words[at], "auth") && left >= 2) {
      hello.login.emplace(words[at + 1], words[at + 2]);
      at += 2;
    } else if (resp::is_word(words[at], "setname") && left >= 1) {
      hello.name = words[++at];
    } else {
      resp::ReplyWriter{hello.error}.error(
          fmt::format("ERR Syntax error in HELLO option '{}'", words[at].substr(0, 128)));
    }
  }
  return hello;
}

}  // namespace

bool ClientSession::log_in(std::string_view user, std::string_view password) {
  const auto known = pool().settings().find_user(user);
  // Where nobody has to log in the default user has no password: any will do.
  if (!known || (pool().wants_login() && !is_same(password, known->password))) return false;
  auto state = client_.session_state();
  state.logged_in = true;
  state.read_only = known->read_only;
  state.rights = pool().protocol().rights_of(user);
  keep("user", user);
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
  const auto wait = std::max(throttle.wait_of(from, now), LoginThrottle::wait_for(failed_logins_));
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
  if (words.size() == 2 && !pool().wants_login())
    return answer(
        "-ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?\r\n");
  const bool right = log_in(words.size() == 3 ? words[1] : default_user, words.back());
  answer_login(right ? "+OK\r\n" : wrong_password);
}

void ClientSession::hello(Words words, std::string_view, const Plan&) {
  const auto hello = read_hello(words);
  if (!hello.error.empty()) return answer(hello.error);
  if (hello.login && !log_in(hello.login->first, hello.login->second))
    return answer_login(wrong_password);
  if (!client_.session_state().logged_in)
    return answer(
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time\r\n");
  if (hello.name && !tell("name", *hello.name)) return;
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

Denied ClientSession::denied(Words words, const Plan& plan) const {
  const auto& state = client_.session_state();
  if (state.read_only && !may_read_only(words, plan)) return Denied::command;
  return state.rights ? state.rights->check(plan, words) : Denied::nothing;
}

/// A transaction of which a part is denied is not done; EXEC itself, denied, ends it.
void ClientSession::deny(Denied denied, Words words, const Plan& plan) {
  const auto* const spec = resp::find_command(words);  // null: the setting `commands` knows it
  if (is_in_transaction()) {
    transaction_->spoil();
    if (plan.verb == SessionVerb::exec) {
      if (!client_.is_next()) return client_.postpone();
      transaction_.reset();
    }
  }
  answer(refusal_of(denied, spec != nullptr ? spec->name : words[0]));
}

}  // namespace sluice::proxy::flow
