#include "proxy/flow/request.hpp"

namespace sluice::proxy {
RequestPool::~RequestPool() {
  while (spare_) delete std::exchange(spare_, spare_->next);
}

void RequestPool::drop(Request& request) noexcept {
  if (request.answered) request.reply.clear();
  request.body.reset();
  request.receiver = nullptr;
  request.place = 0;
  request.quiet = Quiet::no;
  request.key_size = 0;
  request.read_only = request.answered = request.abandoned = request.retried = request.last = false;
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

}  // namespace sluice::proxy
