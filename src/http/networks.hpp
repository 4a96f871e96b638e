/// Networks that are trusted, and whom their proxies speak for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::http {

class Networks {
 public:
  Networks() = default;
  /// "10.0.0.0/8", "::1", "fd00::/8"; "unix": all that come by a unix socket. Throws
  /// Error{bad_argument} for what is none.
  explicit Networks(const std::vector<std::string>& networks);

  /// Of a numeric address; an IPv4 address in IPv6's form is the IPv4 address. Empty: of a unix
  /// socket.
  bool has(std::string_view address) const noexcept;
  bool empty() const noexcept { return networks_.empty() && !has_unix_; }

  /// The client that X-Forwarded-For names, read from its end, where each proxy has added what it
  /// saw: the last address that is not trusted. `peer`, if it is not trusted itself or the list is
  /// no list of addresses there.
  std::string client_behind(const std::string& peer, std::string_view forwarded_for) const;

 private:
  using Address = std::array<std::uint8_t, 16>;
  struct Network {
    Address address{};
    int bits = 0;
  };
  static std::optional<Address> parse(std::string_view text) noexcept;

  friend std::string network_of(std::string_view address);

  std::vector<Network> networks_;
  bool has_unix_ = false;
};

/// The bytes of what one client has for itself: an IPv4 address, or the /64 of an IPv6 address.
/// Empty: it is no numeric address.
std::string network_of(std::string_view address);

}  // namespace sluice::http
