#include "server/ended_logins.hpp"

#include <fmt/format.h>

#include "sluice/clock.hpp"

namespace sluice::server {
namespace {

std::string key_of_logout(const std::string& login) {
  return fmt::format("{}{}", EndedLogins::prefix, login);
}

}  // namespace

void EndedLogins::end(const std::string& login, WallTime until) {
  const auto now = system_clock().wall();
  const std::lock_guard lock{mutex_};
  std::erase_if(ended_, [now](const auto& one) { return one.second <= now; });
  ended_.emplace(login, until);
}

void EndedLogins::tell(const std::string& login, WallTime until) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(until - system_clock().wall());
  if (left <= milliseconds::zero()) return;
  const auto text = fmt::to_string(left.count());
  store_.run({"SET", key_of_logout(login), "1", "PX", text}, {.repeatable = true}).get();
}

bool EndedLogins::has(const std::string& login) const {
  const std::lock_guard lock{mutex_};
  return ended_.contains(login);
}

std::optional<bool> EndedLogins::look_for(const std::string& login, WallTime until) try {
  using namespace std::chrono_literals;
  if (has(login)) return true;
  const auto found = store_.run({"EXISTS", key_of_logout(login)}, {.timeout = 500ms}).get();
  if (found.as_integer() != 1) return false;
  end(login, until);
  return true;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace sluice::server
