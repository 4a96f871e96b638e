#include "server/failed_logins.hpp"

#include <arpa/inet.h>

#include <array>

namespace sluice::server {

std::string network_of_client(const std::string& client) {
  constexpr std::size_t network_bytes = 8;  // of a /64
  std::array<unsigned char, sizeof(in6_addr)> address{};
  if (::inet_pton(AF_INET6, client.c_str(), address.data()) != 1) return client;
  in6_addr whole{};
  std::copy(address.begin(), address.end(), std::begin(whole.s6_addr));
  if (IN6_IS_ADDR_V4MAPPED(&whole)) return client;
  return {address.begin(), address.begin() + network_bytes};
}

void FailedLogins::begin_minute(SteadyTime now) {
  if (until_ && now < *until_) return;
  until_ = now + std::chrono::minutes{1};
  counts_.clear();
  others_ = 0;
}

std::size_t& FailedLogins::count_of(const std::string& network) {
  const auto found = counts_.find(network);
  if (found != counts_.end()) return found->second;
  return counts_.size() < most_networks ? counts_[network] : others_;
}

std::optional<std::chrono::nanoseconds> FailedLogins::wait(const std::string& client) {
  const std::lock_guard lock{mutex_};
  const auto now = clock_.steady();
  begin_minute(now);
  const auto found = counts_.find(network_of_client(client));
  const bool is_full = counts_.size() >= most_networks;
  const auto failures = found != counts_.end() ? found->second : is_full ? others_ : 0;
  if (failures < most_a_minute) return std::nullopt;
  return *until_ - now;
}

void FailedLogins::note(const std::string& client) {
  const std::lock_guard lock{mutex_};
  begin_minute(clock_.steady());
  ++count_of(network_of_client(client));
}

}  // namespace sluice::server
