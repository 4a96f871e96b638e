#include "proxy/flow/session/one_home.hpp"

#include "proxy/flow/pool.hpp"

namespace sluice::proxy {

Server* one_home(Client& client, Words words, const Plan& plan, Server* given) {
  auto& pool = client.pool();
  const bool is_random = pool.settings().distribution == Distribution::random;  // any will do
  Server* const home = given ? given : pool.home_of(words[plan.keys.front()]);
  for (const auto position : plan.keys) {
    pool.note_key(words[position]);
    if (is_random || pool.home_of(words[position]) == home) continue;
    pool.counters().crossed_requests.add();
    client.answer(Failure::crossed);
    return nullptr;
  }
  if (!home) {
    pool.counters().forward_error.add();
    client.answer(Failure::refused);
  }
  return home;
}

}  // namespace sluice::proxy
