/// Mails, three in any 100 ms, from however many machines.
///   rate_limit [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/open.hpp>
#include <sluice/rate_limiter.hpp>

using namespace std::chrono_literals;

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::RateLimiter limiter{*store, "mail", {.rate = 3, .interval = 100ms}};

  // A server refuses, and says when to come back.
  for (int request = 1; request <= 4; ++request) {
    const auto grant = limiter.try_acquire().get();
    if (grant) {
      fmt::print("request {}: accepted, {} left\n", request, grant->left);
    } else {
      fmt::print("request {}: 429, Retry-After: {} ms\n", request,
                 std::chrono::ceil<std::chrono::milliseconds>(grant.error().retry_after).count());
    }
  }

  // A worker waits for its turn, asleep until the permits are free.
  for (int mail = 1; mail <= 4; ++mail) {
    limiter.acquire().get();
    fmt::print("mail {} sent\n", mail);
  }
}
