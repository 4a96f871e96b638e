#include "proxy/flow/addresses.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::proxy {
namespace {

bool same(const net::Address& one, const net::Address& other) noexcept {
  return one.size == other.size && std::memcmp(&one.storage, &other.storage, one.size) == 0;
}

}  // namespace

bool Addresses::contains(const net::Address& address) const noexcept {
  return std::ranges::any_of(all_, [&](const auto& known) { return same(known, address); });
}

void Addresses::skip(const net::Address& address) noexcept {
  if (!all_.empty() && same(current(), address)) place_ = (place_ + 1) % all_.size();
}

void Addresses::take(std::vector<net::Address> all) {
  const auto before = empty() ? net::Address{} : current();
  all_ = std::move(all);
  const auto found = std::ranges::find_if(all_, [&](const auto& a) { return same(a, before); });
  place_ = found == all_.end() ? 0 : static_cast<std::size_t>(found - all_.begin());
}

}  // namespace sluice::proxy
