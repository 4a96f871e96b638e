#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy {

void ClientSession::auth(Words words, std::string_view, const Plan&) {
  if (!pool().wants_login()) return answer("-ERR Client sent AUTH, but no password is set\r\n");
  const bool right = words.back() == pool().settings().redis_auth;
  client_.set_logged_in(right);
  answer(right ? "+OK\r\n" : "-ERR invalid password\r\n");
}

}  // namespace sluice::proxy
