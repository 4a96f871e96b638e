#include "proxy/flow/session/blocking.hpp"

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy {

Blocked::Blocked(Client& client, std::unique_ptr<Blocked>& self) : client_(client), self_(self) {}

Blocked::~Blocked() { connection_.reset(); }

void Blocked::ask(Server& home, Request& request, std::string_view bytes) {
  client_.hold();
  request.receiver = this;
  connection_ = home.borrow(client_.variant());
  connection_->set_patient(true);
  connection_->send(request, bytes);  // and, if it cannot even be begun, this is over
}

void Blocked::let_go() {
  let_go_ = true;
  connection_.reset();
}

void Blocked::replied(Request& request, std::string_view reply) { finish(request, reply, true); }

void Blocked::failed(Request& request, Failure failure) {
  std::string reply;
  if (let_go_)
    reply = "-UNBLOCKED the proxy ends: ask again on another connection\r\n";
  else
    client_.pool().protocol().append_failure(reply, failure);
  finish(request, reply, false);
}

void Blocked::finish(Request& request, std::string_view reply, bool clean) {
  Client& client = client_;
  request.receiver = &client;
  client.replied(request, reply);
  if (clean) connection_.give_back();
  self_.reset();
  client.release();
}

void ClientSession::block(Words words, std::string_view bytes, const Plan& plan) {
  if (client_.has_hung_up()) return client_.close_later();
  Server* const home = client_.home_or_answer(words, plan);
  if (!home) return;
  pool().note_key(words[plan.keys.front()]);
  Request& request = client_.line_up(plan);
  note_key(request, words[plan.keys.front()]);
  blocked_ = std::make_unique<Blocked>(client_, blocked_);
  blocked_->ask(*home, request, bytes);
}

}  // namespace sluice::proxy
