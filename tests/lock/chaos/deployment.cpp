#include "lock/chaos/deployment.hpp"

#include "lock/chaos/names.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "support/plain_client.hpp"

namespace sluice::chaos {

Value Deployment::tell(std::uint16_t port, std::initializer_list<std::string_view> words) {
  return test::PlainClient{port}.command(words);
}

void Deployment::allow_wait(std::uint16_t port, bool allowed) {
  tell(port, {"ACL", "SETUSER", "default", allowed ? "+wait" : "-wait"});
}

void Deployment::set_permits(Store& store) {
  for (const auto& [name, terms] : agreed_rules().names) {
    const auto many = static_cast<std::uint32_t>(terms.permits);
    if (name == "desks") Semaphore{store, name}.ensure_permits(many).get();
    if (name == "permits") PermitSemaphore{store, name}.ensure_permits(many).get();
  }
}

}  // namespace sluice::chaos
