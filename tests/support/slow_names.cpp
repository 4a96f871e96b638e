#include "support/slow_names.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "base/integer.hpp"

namespace sluice::test {
namespace {

struct NameService {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> held;
  std::map<std::string, int> asked;
};

/// Never destroyed: threads may wait here at the end of the program.
NameService& name_service() {
  static auto* const one = new NameService;
  return *one;
}

/// Returns when the host is to be answered.
[[maybe_unused]] void wait_for(const std::string& host) {
  auto& service = name_service();
  std::unique_lock lock{service.mutex};
  ++service.asked[host];
  constexpr std::string_view after = "after-";
  if (host.starts_with(after)) {
    const auto time =
        std::chrono::milliseconds{leading_number<int>(std::string_view{host}.substr(after.size()))};
    const auto until = std::chrono::steady_clock::now() + time;
    while (service.changed.wait_until(lock, until) != std::cv_status::timeout) {
    }
  }
  service.changed.wait(lock, [&] { return !service.held.contains(host); });
}

}  // namespace

SlowNames::SlowNames() = default;

SlowNames::~SlowNames() {
  auto& service = name_service();
  const std::lock_guard lock{service.mutex};
  service.held.clear();
  service.asked.clear();
  service.changed.notify_all();
}

void SlowNames::hold(const std::string& host) {
  auto& service = name_service();
  const std::lock_guard lock{service.mutex};
  service.held.insert(host);
}

void SlowNames::answer(const std::string& host) {
  auto& service = name_service();
  const std::lock_guard lock{service.mutex};
  service.held.erase(host);
  service.changed.notify_all();
}

int SlowNames::asked(const std::string& host) const {
  auto& service = name_service();
  const std::lock_guard lock{service.mutex};
  const auto found = service.asked.find(host);
  return found == service.asked.end() ? 0 : found->second;
}

}  // namespace sluice::test

#ifndef SLUICE_THREAD_SANITIZER
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string name = host ? host : "";
  if (host) sluice::test::wait_for(name);
  return real(name.ends_with(".test") ? "127.0.0.1" : host, port, hints, found);
}
#endif
