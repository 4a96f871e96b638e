// Scripts by their sha. A script is loaded on all servers, and the proxy remembers it; so a server
// that lost it, or never had it, is given it before its first EVALSHA on a connection, in the same
// line, and NOSCRIPT is not seen. In a transaction loading it would become a part of that, so it
// goes over another connection (transaction.cpp).
//
// A server that says NOSCRIPT all the same has been flushed behind our back. The script was not
// run, so it is given and asked for again, unless the client has asked for more since: that would
// then be done before the script, and the client has a right to the order. It gets the error, which
// tells it the truth (and its library will load the script), and the next EVALSHA gives the script
// again.
#include "proxy/flow/session/scripts.hpp"

#include <algorithm>
#include <initializer_list>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/retry.hpp"
#include "proxy/flow/session/errand.hpp"
#include "proxy/flow/session/session.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t sha_size = 40;

std::string sha_of(std::string_view word) {
  std::string sha{word};
  std::ranges::transform(sha, sha.begin(), resp::lower);
  return sha;
}

/// SCRIPT LOAD and SCRIPT FLUSH, on every server.
class ScriptErrand : public Errand {
 public:
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

 protected:
  using Errand::Errand;

  static void begin(std::unique_ptr<ScriptErrand> made, std::string_view bytes) {
    auto& errand = *made;
    own(std::move(made));
    const auto& servers = errand.pool_.servers();
    errand.missing_ =
        servers.size() + 1;  // one for us: they may fail while others are still being asked
    for (const auto& server : servers) {
      if (server->health().well()) {
        errand.ask(*server, bytes);
      } else {
        errand.failure_ = Failure::refused;
        errand.arrived();
      }
    }
    errand.arrived();
  }

  /// All have said something.
  virtual void finish() = 0;

  std::string done_;     // what a server said who did it
  std::string refusal_;  // the first error of a server
  std::optional<Failure> failure_;

 private:
  void arrived() {
    if (--missing_ == 0) finish();
  }

  std::size_t missing_ = 0;
};

/// A server that is out is no reason to refuse: it gets the script before its first EVALSHA.
class LoadErrand final : public ScriptErrand {
 public:
  static void begin(Client& client, const Plan& plan, std::string_view body,
                    std::string_view bytes) {
    std::unique_ptr<LoadErrand> made{new LoadErrand{client, plan, body}};
    ScriptErrand::begin(std::move(made), bytes);
  }

 private:
  LoadErrand(Client& client, const Plan& plan, std::string_view body)
      : ScriptErrand(client, plan), body_(body) {}

  void finish() override {
    if (!refusal_.empty()) return give(refusal_);
    if (done_.empty()) return give(failure_.value_or(Failure::refused));
    const auto sha_at = done_.find('\n') + 1;  // "$40\r\n<sha>\r\n"
    const bool kept = pool_.scripts().put(std::string_view{done_}.substr(sha_at, sha_size), body_);
    if (failure_ && !kept) return give(*failure_);
    give(done_);
  }

  std::string body_;
};

class FlushErrand final : public ScriptErrand {
 public:
  static void begin(Client& client, const Plan& plan, std::string_view bytes) {
    client.pool().scripts().clear();  // for what the client asks behind it
    std::unique_ptr<FlushErrand> made{new FlushErrand{client, plan}};
    ScriptErrand::begin(std::move(made), bytes);
  }

 private:
  FlushErrand(Client& client, const Plan& plan) : ScriptErrand(client, plan) {}

  void finish() override {
    pool_.scripts().clear();  // and what a SCRIPT LOAD before it has brought in the meantime
    if (!refusal_.empty()) return give(refusal_);
    if (failure_) return give(*failure_);
    give(done_);
  }
};

}  // namespace

std::string take_script_for(Pool& pool, Upstream& upstream, std::string_view word) {
  const auto sha = sha_of(word);
  const GivenScripts::Validity now{upstream.generation(), pool.scripts().clearings()};
  if (sha.size() != sha_size || upstream.scripts().has(sha, now)) return {};
  const auto body = pool.scripts().find(sha);
  if (!body) return {};
  upstream.scripts().note(sha, now);
  std::string bytes;
  const std::initializer_list<std::string_view> words{"SCRIPT", "LOAD", *body};
  resp::append_command(bytes, {words.begin(), words.size()});
  return bytes;
}

void forget_given(Server& server) {
  server.for_each_upstream([](Upstream& upstream) { upstream.scripts().clear(); });
}

void ClientSession::script_load(Words words, std::string_view bytes, const Plan& plan) {
  LoadErrand::begin(client_, plan, words[2], bytes);
}

void ClientSession::script_flush(Words, std::string_view bytes, const Plan& plan) {
  FlushErrand::begin(client_, plan, bytes);
}

void ClientSession::give_script(Upstream& upstream, std::string_view sha) {
  const auto bytes = take_script_for(pool(), upstream, sha);
  if (!bytes.empty()) upstream.send_aside(bytes);
}

void ClientSession::evalsha(Words words, std::string_view bytes, const Plan& plan) {
  Server* const home = client_.home_or_answer(words, plan);
  if (!home) return;
  give_script(home->upstream(client_.variant(), client_.number()), words[1]);
  client_.send(*home, words, bytes, plan);
}

bool ClientSession::heal(Request& request, std::string_view error) {
  if (!error.starts_with("-NOSCRIPT")) return false;
  if (!request.body) {  // too large to be kept: whose it is is not known any more
    for (const auto& server : pool().servers()) forget_given(*server);
    return false;
  }
  const auto reader = pool().protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return false;
  const auto words = reader->words();
  const auto sha = sha_of(words[1]);
  const auto plan = pool().protocol().plan(words);
  Server* const home = client_.home_for(words, plan).server;
  if (!home) return false;
  forget_given(*home);
  if (request.retried || has_behind(request, Behind::anything) || !pool().scripts().find(sha))
    return false;
  request.retried = true;
  pool().counters().healed_scripts.add();
  auto& upstream = home->upstream(client_.variant(), client_.number());
  give_script(upstream, sha);
  upstream.send(request, *request.body);
  return true;
}

}  // namespace sluice::proxy
