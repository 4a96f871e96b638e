/// What a client's connection is beyond a line of requests: who the client is, which protocol and database it has
/// chosen, and whether it is in a transaction, waits on a server or listens to channels. Made when it is first needed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "proxy/flow/client.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

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
  /// An EVALSHA was answered with NOSCRIPT. True: it has been asked again, and will be answered.
  bool heal(Request& request);

 private:
  using Handler = void (ClientSession::*)(Words words, std::string_view bytes, const Plan& plan);
  struct Verb;
  static const Verb verbs[];

  // scripts.cpp
  void script_load(Words words, std::string_view bytes, const Plan& plan);
  void script_flush(Words words, std::string_view bytes, const Plan& plan);
  void evalsha(Words words, std::string_view bytes, const Plan& plan);
  // scan.cpp
  void scan(Words words, std::string_view bytes, const Plan& plan);
  // login.cpp
  void auth(Words words, std::string_view bytes, const Plan& plan);

  Pool& pool() const noexcept { return client_.pool(); }
  void answer(std::string_view reply) { client_.answer(reply); }

  Client& client_;
};

}  // namespace sluice::proxy
