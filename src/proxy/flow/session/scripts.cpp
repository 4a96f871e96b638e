// SCRIPT LOAD, SCRIPT FLUSH and EVALSHA. A script is loaded on all servers, and the proxy remembers
// it. A server that lost it, or never had it, is sent SCRIPT LOAD before its first EVALSHA on a
// connection, so that the client does not see NOSCRIPT. In a transaction SCRIPT LOAD would become a
// part of it, so it goes over another connection (transaction.cpp).
//
// If a server says NOSCRIPT all the same, another client has flushed it directly. The script was
// not run, so it is loaded and asked for again, unless the client has sent more requests since:
// those would then be done before the script, out of order. Then the client gets the error, its
// library loads the script, and the next EVALSHA loads it again here.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::size_t sha_size = 40;

std::string sha_of(std::string_view word) {
  std::string sha{word};
  std::ranges::transform(sha, sha.begin(), resp::lower);
  return sha;
}

/// SCRIPT LOAD (with the `body`) or SCRIPT FLUSH (without), on every server.
class ScriptBroadcast final : public SideRequest {
 public:
  ScriptBroadcast(Client& client, const Plan& plan, std::optional<std::string> body)
      : SideRequest(client, plan), body_(std::move(body)) {}

  void begin(std::string_view bytes) {
    const auto& servers = pool_.servers();
    missing_ = servers.size() + 1;  // and one for this loop: a server may fail before its end
    for (const auto& server : servers) {
      if (server->health().well()) {
        ask(*server, bytes);
      } else {
        failure_ = Failure::refused;
        arrived();
      }
    }
    arrived();
  }

  void replied(Request& request, std::string_view reply) override {
    drop(request);
    if (!reply.starts_with('-'))
      done_ = reply;
    else if (refusal_.empty())
      refusal_ = reply;
    arrived();
  }

  void failed(Request& request, Failure failure) override {
    drop(request);
    failure_ = failure;
    arrived();
  }

 private:
  void arrived() {
    if (--missing_ != 0) return;
    if (!body_) pool_.scripts().clear();  // also what a SCRIPT LOAD has brought in the meantime
    if (!refusal_.empty()) return give(refusal_);
    const bool is_kept = keep();
    if (done_.empty() || (failure_ && !is_kept)) return give(failure_.value_or(Failure::refused));
    give(done_);
  }

  /// True: the script is in the cache. Then an ejected server is no reason to refuse SCRIPT LOAD:
  /// it gets the script before its first EVALSHA.
  bool keep() {
    const auto sha_at = done_.find('\n') + 1;  // "$40\r\n<sha>\r\n"
    return body_ && !done_.empty() &&
           pool_.scripts().put(std::string_view{done_}.substr(sha_at, sha_size), *body_);
  }

  std::optional<std::string> body_;
  std::string done_;     // the last reply that is no error
  std::string refusal_;  // the first error of a server
  std::optional<Failure> failure_;
  std::size_t missing_ = 0;
};

}  // namespace

std::string script_load_for(Pool& pool, Upstream& upstream, std::string_view word) {
  const auto sha = sha_of(word);
  const LoadedScripts::Validity now{upstream.generation(), pool.scripts().clearings()};
  if (sha.size() != sha_size || upstream.scripts().has(sha, now)) return {};
  const auto body = pool.scripts().find(sha);
  if (!body) return {};
  upstream.scripts().note(sha, now);
  std::string bytes;
  const std::initializer_list<std::string_view> words{"SCRIPT", "LOAD", *body};
  resp::append_command(bytes, {words.begin(), words.size()});
  return bytes;
}

std::string as_eval(Pool& pool, Words words, const Plan& plan) {
  if (plan.verb != SessionVerb::evalsha) return {};
  const auto body = pool.scripts().find(sha_of(words[1]));
  if (!body) return {};
  std::vector<std::string_view> said{words.begin(), words.end()};
  said[0] = resp::is_word(words[0], "evalsha") ? "EVAL" : "EVAL_RO";
  said[1] = *body;
  std::string bytes;
  resp::append_command(bytes, said);
  return bytes;
}

void forget_loaded(Server& server) {
  server.for_each_upstream([](Upstream& upstream) { upstream.scripts().clear(); });
}

void ClientSession::script_load(Words words, std::string_view bytes, const Plan& plan) {
  SideRequest::make<ScriptBroadcast>(client_, plan, std::string{words[2]}).begin(bytes);
}

void ClientSession::script_flush(Words, std::string_view bytes, const Plan& plan) {
  pool().scripts().clear();  // for what the client asks behind it
  SideRequest::make<ScriptBroadcast>(client_, plan, std::nullopt).begin(bytes);
}

void ClientSession::load_script(Upstream& upstream, std::string_view sha) {
  const auto bytes = script_load_for(pool(), upstream, sha);
  if (!bytes.empty()) upstream.send_aside(bytes);
}

void ClientSession::evalsha(Words words, std::string_view bytes, const Plan& plan) {
  Server* const home = client_.home_or_answer(words, plan);
  if (!home) return;
  load_script(home->upstream(client_.mode(), client_.id()), words[1]);
  client_.send(*home, words, bytes, plan);
}

bool ClientSession::heal(Request& request, std::string_view error) {
  if (!error.starts_with("-NOSCRIPT No matching script")) return false;
  if (!request.body) {  // it was too large to be kept: which server it went to is not known
    for (const auto& server : pool().servers()) forget_loaded(*server);
    return false;
  }
  const auto reader = pool().protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return false;
  const auto words = reader->words();
  const auto sha = sha_of(words[1]);
  const auto plan = pool().protocol().plan(words);
  Server* const home = client_.home_for(words, plan).server;
  if (!home || !client_.may_go_again(words, plan)) return false;
  if (pool().settings().is_of_cluster())  // the node that has answered may be another one
    for (const auto& server : pool().servers()) forget_loaded(*server);
  else
    forget_loaded(*home);
  if (request.retried || has_behind(request, Behind::anything) || !pool().scripts().find(sha))
    return false;
  request.retried = true;
  pool().counters().healed_scripts.add();
  auto& upstream = home->upstream(client_.mode(), client_.id());
  load_script(upstream, sha);
  upstream.send(request, *request.body);
  return true;
}

}  // namespace sluice::proxy::flow
