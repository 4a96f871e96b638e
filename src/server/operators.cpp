#include "server/operators.hpp"

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "http/asking_page.hpp"
#include "http/text.hpp"
#include "server/bearer.hpp"
#include "server/pages/cookies.hpp"
#include "server/problems.hpp"
#include "server/this_machine.hpp"
#include "sluice/log.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view audience = "console";
constexpr std::string_view key_claim = "key";
constexpr std::size_t longest_login = 1024;

Unexpected<http::Response> refuse_operator(const http::ProblemType& type, std::string_view detail) {
  return Unexpected{refuse_credentials(type, detail)};
}

http::Response not_from_our_page() {
  return http::problem(problems::not_same_origin, only_of_our_pages);
}

/// Of JSON or of a form.
std::optional<std::string> key_in(const std::string& body) {
  if (body.size() > longest_login) return std::nullopt;
  if (body.starts_with('{')) {
    const auto json = JsonValue::parse(body, {.bytes = longest_login, .depth = 2});
    const auto* const key = json ? json->find("key") : nullptr;
    const auto* const text = key ? key->as_text() : nullptr;
    return text ? std::optional{*text} : std::nullopt;
  }
  constexpr std::string_view name = "key=";
  if (!body.starts_with(name)) return std::nullopt;
  return http::unescape(std::string_view{body}.substr(name.size()), true);
}

}  // namespace

struct Operators::Proof {
  Operator who;
  bool is_of_browser = true;  ///< a page may have made the browser send it
};

Operators::Operators(const ShopKeys& keys, TokenKeys cookies, EndedLogins& ended, Clock& clock,
                     Options options)
    : keys_(keys),
      cookies_(std::move(cookies)),
      ended_(ended),
      clock_(clock),
      options_(options),
      failures_(clock) {}

Expected<Operators::Proof, http::Response> Operators::prove(const http::Request& request) const {
  if (keys_.is_empty()) {
    if (!options_.has_local)
      return refuse_operator(
          problems::no_operators,
          "there are no keys: `sluice serve key --id NAME --scopes operate` makes one, --shop-keys "
          "FILE gives it to the service; --local-operator is for a machine of your own");
    if (!is_local(request)) return refuse_operator(problems::other_host, only_local);
    return Proof{{.id = "local", .is_anybody = true}};
  }
  if (request.field("Authorization")) {
    auto id = keys_.who_asks(request, Scope::operate);
    if (id) return Proof{{.id = std::move(*id)}, false};
    if (auto reader = keys_.who_asks(request, Scope::read))
      return Proof{{.id = std::move(*reader), .may_act = false}, false};
    return Unexpected{std::move(id.error())};
  }
  auto who = by_cookie(request);
  if (!who) return Unexpected{std::move(who.error())};
  return Proof{std::move(*who)};
}

/// Empty: none with that id is good for anything here.
std::optional<ShopKey> Operators::find_key(std::string_view id) const {
  auto key = keys_.find(id, Scope::operate);
  return key ? key : keys_.find(id, Scope::read);
}

/// A cookie names the key by a part of its digest: one of a key that was taken away, or replaced
/// under the same name, is good no more.
Expected<Operator, http::Response> Operators::by_cookie(const http::Request& request) const {
  const auto word = cookie_of(request, cookie);
  if (word.empty())
    return refuse_operator(problems::unknown_key,
                           "log in at /console, or send Authorization: Bearer KEY");
  const auto claims = cookies_.check(word, audience, clock_.wall());
  const auto key = claims ? find_key(claims->subject) : std::nullopt;
  const auto named = claims ? claims->more.find(key_claim) : decltype(claims->more.end()){};
  if (!claims || ended_.has(claims->nonce))
    return refuse_operator(problems::unknown_key, the_login_has_ended);
  if (!key || named == claims->more.end() || named->second != key->mark())
    return refuse_operator(problems::unknown_key,
                           "the key of this login is not among those of --shop-keys any more");
  return Operator{.id = claims->subject,
                  .may_act = std::ranges::count(key->scopes, Scope::operate) > 0,
                  .login = claims->nonce,
                  .until = claims->expires};
}

std::optional<http::Response> Operators::refuse_ended(const Operator& who) {
  if (who.login.empty() || !ended_.look_for(who.login, *who.until).value_or(false)) return {};
  return refuse_credentials(problems::unknown_key, the_login_has_ended);
}

Expected<Operator, http::Response> Operators::who_asks(const http::Request& request) const {
  auto proof = prove(request);
  if (!proof) return Unexpected{std::move(proof.error())};
  return std::move(proof->who);
}

Expected<Operator, http::Response> Operators::who_acts(const http::Request& request) const {
  auto proof = prove(request);
  if (!proof) return Unexpected{std::move(proof.error())};
  if (!proof->who.may_act)
    return refuse_operator(problems::not_allowed, "the key is good for 'read', not for 'operate'");
  if (proof->is_of_browser && http::asking_page(request) != http::AskingPage::ours)
    return Unexpected{not_from_our_page()};
  return std::move(proof->who);
}

/// Another page that logs a browser in, under a key of its own, would see what the operator does. A
/// right key comes in however often others failed: nobody guesses one, and nobody who shares an
/// address with an operator, or a proxy, keeps him out.
Operators::Login Operators::log_in(const http::Request& request) {
  if (http::asking_page(request) == http::AskingPage::anothers) return {not_from_our_page(), {}};
  const auto word = key_in(request.body());
  if (!word)
    return {http::problem(problems::bad_body, "send key=sk... or {\"key\":\"sk...\"}"), {}};
  auto id = keys_.check(*word, Scope::operate);
  if (!id) id = keys_.check(*word, Scope::read);
  if (!id) return {refuse_login(request.client(), id.error()), {}};
  http::Response answer{.status = 204};
  answer.add("Set-Cookie", cookie_for(*id, request.came_by_tls()));
  return {std::move(answer), *id};
}

http::Response Operators::refuse_login(const std::string& client, ShopKeys::Refusal why) {
  if (const auto wait = failures_.wait(client)) {
    auto refusal = http::problem(problems::too_many_logins);
    http::add_retry_after(refusal, *wait);
    return refusal;
  }
  failures_.note(client);
  log(LogLevel::warning,
      fmt::format("console: a login from {} failed", client.empty() ? "a unix socket" : client));
  if (why == ShopKeys::Refusal::other_scope)
    return refuse_credentials(problems::not_allowed, "the key is not good for 'operate' or 'read'");
  return refuse_credentials(problems::unknown_key, "the key is none of this service");
}

std::string Operators::cookie_for(const std::string& id, bool is_tls) const {
  const auto token = cookies_.sign({.subject = id,
                                    .audience = std::string{audience},
                                    .expires = clock_.wall() + login_lasts,
                                    .more = {{std::string{key_claim}, find_key(id)->mark()}}});
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", cookie, token,
                     std::chrono::seconds{login_lasts}.count(), is_tls ? "; Secure" : "");
}

Operators::Logout Operators::log_out(const http::Request& request) {
  if (http::asking_page(request) == http::AskingPage::anothers) return {not_from_our_page(), {}};
  auto who = who_asks(request);
  if (who && !who->login.empty()) ended_.end(who->login, *who->until);
  http::Response answer{.status = 204};
  answer.add("Set-Cookie", fmt::format("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}",
                                       cookie, request.came_by_tls() ? "; Secure" : ""));
  return {std::move(answer), who ? std::optional{std::move(*who)} : std::nullopt};
}

}  // namespace sluice::server
