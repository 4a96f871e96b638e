#include "proxy/flow/retry.hpp"

namespace sluice::proxy {
namespace {

constexpr int most_steps = 256;  // a connection may break with tens of thousands under way

}  // namespace

bool has_behind(const Request& request, Behind what) noexcept {
  int steps = 0;
  for (const Request* later = request.next; later; later = later->next) {
    if (++steps > most_steps) return true;
    if (!later->answered && (what == Behind::anything || !later->read_only)) return true;
  }
  return false;
}

bool may_ask_again(const Request& asked, const Request& whole, Failure failure) noexcept {
  const bool broken = failure == Failure::closed || failure == Failure::reset;
  return broken && asked.read_only && !asked.retried && whole.receiver != nullptr &&
         !has_behind(whole, Behind::writes);
}

}  // namespace sluice::proxy
