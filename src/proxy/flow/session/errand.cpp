#include "proxy/flow/session/errand.hpp"

#include <string>
#include <utility>

#include "proxy/flow/pool.hpp"

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
  server.upstream(variant_, client_).send(request, bytes);
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
