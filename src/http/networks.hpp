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
  /// "10.0.0.0/8", "::1", "fd00::/8". Throws Error{bad_argument} for what is none.
  explicit Networks(const std::vector<std::string>& networks);

  /// Of a numeric address; an IPv4 address in IPv6's form is the IPv4 address.
  bool has(std::string_view address) const noexcept;
  bool empty() const noexcept { return networks_.empty(); }

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

  std::vector<Network> networks_;
};

}  // namespace sluice::http
