#include "proxy/flow/session/session.hpp"

#include <algorithm>

#include "proxy/flow/pool.hpp"

namespace sluice::proxy {

struct ClientSession::Verb {
  SessionVerb verb;
  Handler handler;
};

const ClientSession::Verb ClientSession::verbs[] = {
    {SessionVerb::auth, &ClientSession::auth},
    {SessionVerb::script_load, &ClientSession::script_load},
    {SessionVerb::script_flush, &ClientSession::script_flush},
    {SessionVerb::evalsha, &ClientSession::evalsha},
    {SessionVerb::scan, &ClientSession::scan},
};

ClientSession::ClientSession(Client& client) : client_(client) {}

ClientSession::~ClientSession() = default;

bool ClientSession::intercept(Words, std::string_view, const Plan& plan) {
  if (client_.is_logged_in()) return false;
  const bool may = plan.way == Way::session &&
                   (plan.verb == SessionVerb::auth || plan.verb == SessionVerb::hello ||
                    plan.verb == SessionVerb::reset);
  if (!may) answer("-NOAUTH Authentication required\r\n");
  return !may;
}

void ClientSession::serve(Words words, std::string_view bytes, const Plan& plan) {
  const auto* const found = std::ranges::find(verbs, plan.verb, &Verb::verb);
  (this->*found->handler)(words, bytes, plan);
}

}  // namespace sluice::proxy
