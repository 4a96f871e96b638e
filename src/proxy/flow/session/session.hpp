/// What a client's connection is beyond a queue of requests: who the client is, which protocol and
/// database it has chosen, and whether it is in a transaction, waits in a blocking command or has
/// subscribed to channels. Made when it is first needed, and small: most clients send HELLO and
/// AUTH and no more.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "front/own_words.hpp"
#include "front/rights.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class BlockingRequest;
class Fetch;
class ClientLimits;
class Subscriptions;
class Transaction;

class ClientSession {
 public:
  explicit ClientSession(Client& client);
  ~ClientSession();

  /// A first look at every request of the client. True: its user may not ask that, and was told.
  bool refuses(Words words, const Plan& plan);
  /// True: the request is queued in a transaction, or was answered because it cannot be.
  bool queues(Words words, std::string_view bytes, const Plan& plan);
  /// A request of Route::session.
  void serve(Words words, std::string_view bytes, const Plan& plan);
  /// A server answered with an error. True: it lacked a script, which was loaded, and the request
  /// was sent again.
  bool heal(Request& request, std::string_view error);

  /// It waits in a blocking command.
  bool is_blocked() const noexcept { return blocked_ != nullptr; }
  /// How many requests it may send; null: the pool has no limits.
  ClientLimits* limits() const noexcept { return limits_.get(); }
  void set_limits(std::unique_ptr<ClientLimits> limits) noexcept;
  /// It has subscribed to channels: that it sends nothing does not mean that it is idle.
  bool is_subscribed() const noexcept;
  std::size_t subscribed(bool to_patterns) const noexcept;
  /// Between MULTI and EXEC or DISCARD.
  bool is_in_transaction() const noexcept;
  /// What should have been queued in a transaction was answered with an error.
  void spoil();
  /// The connection of its transaction has more to send than the server takes.
  bool meets_full_server() const noexcept;
  /// A connection to a server is the client's alone, or an answer is delayed: what it is amid of
  /// cannot be gone on with in another process.
  bool is_amid() const noexcept {
    return transaction_ || blocked_ || delayed_ != nullptr || is_subscribed();
  }
  /// What the client has said of itself.
  front::OwnWords& words() noexcept { return words_; }
  /// As whom it has logged in.
  std::string_view user() const noexcept;
  /// While keys move: whether those of the request are where it will be served. False: they are
  /// fetched, or held, and the request comes again; or it was refused.
  bool has_keys_at_home(Words words, std::string_view bytes, const Plan& plan);
  /// A move has begun, ended, or come to another phase.
  void note_move();
  /// A client in a blocking command waits no more, and is told why.
  void unblock(std::string_view why);
  /// What it waits for, and what it has queued, is given up: its user may do less than before, say.
  void revoke(std::string_view why);
  /// From WATCH or MULTI on: what it reads has to be what EXEC compares with.
  bool watches() const noexcept;
  /// Whether the meaning of the requests behind it depends on such a verb: MULTI, SELECT, AUTH ...
  static bool steers(SessionVerb verb) noexcept;
  /// The client ends if it listens to what it may not hear.
  void check_subscriptions(const Rights& rights);

 private:
  /// Serves a request of Route::session.
  using Serve = void(Words words, std::string_view bytes, const Plan& plan);
  struct Verb;
  static const Verb verbs[];
  static const Verb& row_of(SessionVerb verb) noexcept;
  static bool is_harmless(SessionVerb verb) noexcept;

  // session.cpp
  Serve select, reset;
  // login.cpp
  Serve auth, hello;
  /// Whether it is the user's password.
  bool log_in(std::string_view user, std::string_view password);
  void answer_login(std::string_view reply);
  bool may_read_only(Words words, const Plan& plan) const;
  front::Denied denied(Words words, const Plan& plan) const;
  void deny(front::Denied denied, Words words, const Plan& plan);
  void append_greeting(std::string& out) const;
  // client_verb.cpp
  Serve client;
  void set_reply_mode(std::string_view mode);
  // client_list.cpp
  void list(Words words);
  // transaction.cpp
  Serve transact;
  // side_request.cpp
  Serve block;
  // scan.cpp
  Serve scan;
  // scripts.cpp
  Serve script_load, script_flush, evalsha;
  void load_script(Upstream& upstream, std::string_view sha);
  // subscription.cpp
  Serve subscribe, unsubscribe;
  Subscriptions& subscriptions();
  /// True: a subscribed client may not send this, and has been told so.
  bool is_confined(Words words, const Plan& plan);

  Pool& pool() const noexcept { return client_.pool(); }
  void answer(std::string_view reply) { client_.answer(reply); }

  Client& client_;
  Request* delayed_ = nullptr;  // an AUTH or HELLO whose answer waits
  loop::Loop::TimerId delay_{};
  std::uint8_t failed_logins_ = 0;
  front::OwnWords words_;
  std::unique_ptr<Transaction> transaction_;  // from MULTI or WATCH on
  std::unique_ptr<Subscriptions> subscriptions_;
  std::unique_ptr<Fetch> fetch_;  // while keys move
  std::unique_ptr<ClientLimits> limits_;
  std::unique_ptr<BlockingRequest> blocked_;  // while it waits in a blocking command
};

}  // namespace sluice::proxy::flow
