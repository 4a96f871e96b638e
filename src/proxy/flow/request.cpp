#include "proxy/flow/request.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr int most_steps = 256;  // a connection may break with tens of thousands under way

}  // namespace

RequestPool::~RequestPool() {
  while (spare_) delete std::exchange(spare_, spare_->next);
}

void RequestPool::drop(Request& request) noexcept {
  if (request.answered) request.reply.clear();
  request.body.reset();
  request.receiver = nullptr;
  request.place = request.expected = 0;
  request.quiet = Quiet::no;
  request.key_size = 0;
  request.read_only = request.answered = request.abandoned = request.retried = request.last =
      request.mirrored = request.detours = request.kept = request.at_replica = false;
  request.hops = request.pauses = 0;
  request.next = std::exchange(spare_, &request);
  ++spare_count_;
}

bool RequestPool::trim() noexcept {
  const auto unneeded = (fewest_spare_ + 1) / 2;
  for (std::size_t i = 0; i < unneeded; ++i) delete std::exchange(spare_, spare_->next);
  spare_count_ -= unneeded;
  fewest_spare_ = spare_count_;
  return unneeded != 0;
}

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

}  // namespace sluice::proxy::flow
