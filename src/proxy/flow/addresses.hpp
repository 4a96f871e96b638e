/// The addresses of a server, and which of them is the next to connect to.
#pragma once

#include <cstddef>
#include <vector>

#include "net/endpoint.hpp"

namespace sluice::proxy {

class Addresses {
 public:
  Addresses() = default;
  explicit Addresses(std::vector<net::Address> all) : all_(std::move(all)) {}

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  /// REQUIRES: !empty().
  const net::Address& current() const noexcept { return all_[place_]; }
  /// `address` did not answer: if it is the current one, the next is.
  void skip(const net::Address& address) noexcept;
  bool contains(const net::Address& address) const noexcept;
  /// A newer answer of the name service. The current one stays so, if it is still among them.
  void take(std::vector<net::Address> all);

 private:
  std::vector<net::Address> all_;
  std::size_t place_ = 0;
};

}  // namespace sluice::proxy
