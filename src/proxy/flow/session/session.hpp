/// What a client's connection is beyond a line of requests: who the client is, which protocol and
/// database it has chosen, and whether it is in a transaction, waits on a server or listens to
/// channels. Made when it is first needed, and small: most clients say HELLO and who they are, and
/// no more.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "proxy/flow/client.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class Blocked;
class Subscriptions;
class Transaction;

class ClientSession {
 public:
  explicit ClientSession(Client& client);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// A first look at every request of the client. True: it has been dealt with.
  bool intercept(Words words, std::string_view bytes, const Plan& plan);
  /// A request of Way::session.
  void serve(Words words, std::string_view bytes, const Plan& plan);
  /// A server answered with an error. True: it lacks a script, has been given it and asked again,
  /// and will answer.
  bool heal(Request& request, std::string_view error);

  /// It waits on a server for what only it may get.
  bool is_blocked() const noexcept { return blocked_ != nullptr; }
  /// It listens to channels: that it says nothing means nothing.
  bool is_subscribed() const noexcept;
  /// It has begun what takes several requests.
  bool is_busy() const noexcept;
  /// The proxy ends: whoever waits on a server is told so.
  void drain();

 private:
  using Handler = void (ClientSession::*)(Words words, std::string_view bytes, const Plan& plan);
  struct Verb;
  static const Verb verbs[];
  static const Verb& row_of(SessionVerb verb) noexcept;
  static bool is_harmless(SessionVerb verb) noexcept;

  /// The verbs; what they have to know of one another is in the members below.
  // scripts.cpp
  void script_load(Words words, std::string_view bytes, const Plan& plan);
  void script_flush(Words words, std::string_view bytes, const Plan& plan);
  void give_script(Upstream& upstream, std::string_view sha);
  void evalsha(Words words, std::string_view bytes, const Plan& plan);
  // listening.cpp
  Subscriptions& subscriptions();
  void subscribe(Words words, std::string_view bytes, const Plan& plan);
  void unsubscribe(Words words, std::string_view bytes, const Plan& plan);
  /// True: it listens, and this has been answered or refused.
  bool is_confined(Words words, const Plan& plan);
  // scan.cpp
  void scan(Words words, std::string_view bytes, const Plan& plan);
  // login.cpp
  void auth(Words words, std::string_view bytes, const Plan& plan);
  void hello(Words words, std::string_view bytes, const Plan& plan);
  /// Answers what is wrong, if anything is.
  bool log_in(std::string_view user, std::string_view password);
  bool may(Words words, const Plan& plan) const;
  static void append_no_permission(std::string& out, Words words);
  void append_greeting(std::string& out) const;
  // choices.cpp
  void select(Words words, std::string_view bytes, const Plan& plan);
  void reset(Words words, std::string_view bytes, const Plan& plan);
  // client_verb.cpp
  void client(Words words, std::string_view bytes, const Plan& plan);
  std::string_view told(std::string_view what) const noexcept;
  /// Answers what is wrong, if anything is.
  bool tell(std::string_view what, std::string_view value);
  void keep(std::string_view what, std::string_view value);
  void set_reply_mode(std::string_view mode);
  std::string info() const;
  // transaction.cpp
  Transaction& transaction();
  void multi(Words words, std::string_view bytes, const Plan& plan);
  void exec(Words words, std::string_view bytes, const Plan& plan);
  void discard(Words words, std::string_view bytes, const Plan& plan);
  void watch(Words words, std::string_view bytes, const Plan& plan);
  void unwatch(Words words, std::string_view bytes, const Plan& plan);
  // blocking.cpp
  void block(Words words, std::string_view bytes, const Plan& plan);

  Pool& pool() const noexcept { return client_.pool(); }
  void answer(std::string_view reply) { client_.answer(reply); }

  Client& client_;
  std::string told_;        // "name=x lib-name=y ...": what the client has told of itself
  bool read_only_ = false;  // it is a user who may only read
  bool muted_ = false;      // CLIENT REPLY OFF
  std::unique_ptr<Transaction> transaction_;  // from MULTI or WATCH on
  std::unique_ptr<Subscriptions> subscriptions_;
  std::unique_ptr<Blocked> blocked_;  // while it waits on a server
};

}  // namespace sluice::proxy
