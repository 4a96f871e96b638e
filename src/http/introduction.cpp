#include "http/introduction.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "http/worker.hpp"

namespace sluice::http {

using Outcome = net::Transfer::Outcome;

void Introduction::ready(Readiness) {
  std::array<char, 1024> bytes;
  while (header_.wants() > 0) {
    const auto got =
        socket_.read_some(std::span{bytes}.first(std::min(bytes.size(), header_.wants())));
    if (got.outcome == Outcome::would_block) return;
    // Balancers look in this way whether we listen.
    if (got.outcome != Outcome::moved && header_.is_empty()) return worker_.left(*this);
    if (got.outcome != Outcome::moved) return worker_.turn_away(*this, "closed in its header");
    header_.read({bytes.data(), got.bytes});
  }
  if (header_.stage() == ProxyHeader::Stage::refused)
    return worker_.turn_away(*this, header_.refusal());
  worker_.introduced(*this);
}

}  // namespace sluice::http
