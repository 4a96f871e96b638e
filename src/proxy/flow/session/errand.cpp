#include "proxy/flow/session/errand.hpp"

#include <string>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/retry.hpp"

namespace sluice::proxy {

Errand::Errand(Client& client, const Plan& plan)
    : pool_(client.pool()),
      whole_(client.line_up(plan)),
      variant_(client.variant()),
      client_(client.number()) {}

void Errand::ask(Server& server, std::string_view bytes) {
  Request& request = pool_.loop().requests().make();
  request.receiver = this;
  request.command = whole_.command;
  request.read_only = whole_.read_only;
  server.upstream(variant_, client_).send(request, bytes);
}

bool Errand::ask_again(Request& request, Failure failure, Server& server, std::string_view bytes) {
  if (!pool_.settings().retry_reads || !may_ask_again(request, whole_, failure)) return false;
  if (!server.health().well()) return false;
  request.retried = true;
  pool_.counters().retries.add();
  server.upstream(variant_, client_).send(request, bytes);
  return true;
}

void Errand::drop(Request& request) { pool_.loop().requests().drop(request); }

void Errand::give(std::string_view reply) {
  const auto end = std::move(self_);
  if (whole_.receiver)
    whole_.receiver->replied(whole_, reply);
  else
    drop(whole_);
}

void Errand::give(Failure failure) {
  std::string reply;
  pool_.protocol().append_failure(reply, failure);
  pool_.counters().forward_error.add();
  give(reply);
}

}  // namespace sluice::proxy
