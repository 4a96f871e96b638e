#include "proxy/flow/session/side_request.hpp"

#include <fmt/format.h>

#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy::flow {

SideRequest::SideRequest(Client& client, const Plan& plan)
    : pool_(client.pool()),
      whole_(client.enqueue(plan)),
      mode_(client.mode()),
      client_(client.id()) {}

void SideRequest::ask(Server& server, std::string_view bytes, std::uint32_t place,
                      std::size_t parts, std::string_view key) {
  Request& request = pool_.loop().requests().make();
  request.receiver = this;
  request.place = place;
  request.expected = whole_.expected / static_cast<std::uint32_t>(parts);
  request.command = whole_.command;
  request.read_only = whole_.read_only;
  note_key(request, key);
  server.upstream(mode_, client_).send(request, bytes);
}

bool SideRequest::may_ask_again(const Request& request, Failure failure,
                                const Server& server) const {
  return pool_.settings().retry_reads && flow::may_ask_again(request, whole_, failure) &&
         pool_.servers().contains(&server) && server.health().well();
}

void SideRequest::ask_again(Request& request, Server& server, std::string_view bytes) {
  request.retried = true;
  pool_.counters().retries.add();
  server.upstream(mode_, client_).send(request, bytes);
}

void SideRequest::drop(Request& request) { pool_.loop().requests().drop(request); }

void SideRequest::give(std::string_view reply) {
  const auto end = std::move(self_);
  if (whole_.receiver)
    whole_.receiver->replied(whole_, reply);
  else
    drop(whole_);
}

void SideRequest::give(Failure failure) {
  pool_.counters().forward_error.add();
  give(pool_.protocol().reply_for(failure));
}

void BlockingRequest::ask(Server& home, Request& request, std::string_view bytes) {
  client_.hold();
  request.receiver = this;
  connection_ = client_.borrow(home, client_.mode());
  if (!connection_) return failed(request, Failure::overloaded);
  connection_->set_untimed(true);
  connection_->send(request, bytes);  // this may be destroyed: no connection could be begun
}

void BlockingRequest::unblock(std::string_view why) {
  unblocked_ = why;
  connection_.reset();
}

void BlockingRequest::replied(Request& request, std::string_view reply) {
  finish(request, reply, true);
}

void BlockingRequest::failed(Request& request, Failure failure) {
  const auto reply = unblocked_.empty() ? client_.pool().protocol().reply_for(failure)
                                        : fmt::format("-UNBLOCKED {}\r\n", unblocked_);
  finish(request, reply, false);
}

void BlockingRequest::finish(Request& request, std::string_view reply, bool clean) {
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
  Request& request = client_.enqueue(plan);
  note_key(request, words[plan.keys.front()]);
  blocked_ = std::make_unique<BlockingRequest>(client_, blocked_);
  blocked_->ask(*home, request, bytes);
}

}  // namespace sluice::proxy::flow
