#include "http/networks.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "http/text.hpp"
#include "sluice/error.hpp"

namespace sluice::http {
namespace {

constexpr int bits_of_ipv6 = 128;
constexpr int bits_before_ipv4 = 96;  // ::ffff:0:0

/// "192.0.2.1:4711" and "[2001:db8::1]:4711", as some balancers write it.
std::string_view without_port(std::string_view text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  const auto colon = text.find(':');
  return colon == text.rfind(':') ? text.substr(0, colon) : text;
}

}  // namespace

/// IPv4 lies in IPv6 as ::ffff:a.b.c.d.
std::optional<Networks::Address> Networks::parse(std::string_view text) noexcept {
  const std::string terminated{text.substr(0, INET6_ADDRSTRLEN)};
  Address address{};
  if (::inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1) return address;
  address[10] = address[11] = 0xFF;
  if (::inet_pton(AF_INET, terminated.c_str(), address.data() + 12) == 1) return address;
  return {};
}

Networks::Networks(const std::vector<std::string>& networks) {
  for (const auto& text : networks) {
    if (text == "unix") {
      has_unix_ = true;
      continue;
    }
    const auto slash = text.find('/');
    const auto address = parse(std::string_view{text}.substr(0, slash));
    const int before = text.find(':') == std::string::npos ? bits_before_ipv4 : 0;
    const auto bits = slash == std::string::npos
                          ? std::optional{bits_of_ipv6 - before}
                          : parse_integer<int>(std::string_view{text}.substr(slash + 1));
    if (!address || !bits || *bits < 0 || *bits > bits_of_ipv6 - before)
      throw Error{Errc::bad_argument,
                  fmt::format("'{}' is no network: write it like 10.0.0.0/8 or fd00::/8, or "
                              "unix for a unix socket",
                              text)};
    networks_.push_back({*address, *bits + before});
  }
}

bool Networks::has(std::string_view text) const noexcept {
  if (text.empty()) return has_unix_;
  if (networks_.empty()) return false;
  const auto address = parse(text);
  return address && std::ranges::any_of(networks_, [&](const Network& network) {
           for (int bit = 0; bit < network.bits; ++bit) {
             const auto byte = static_cast<std::size_t>(bit / 8);
             const int mask = 0x80 >> (bit % 8);
             if (((*address)[byte] & mask) != (network.address[byte] & mask)) return false;
           }
           return true;
         });
}

std::string Networks::client_behind(const std::string& peer, std::string_view forwarded_for) const {
  std::string client = peer;
  while (has(client) && !forwarded_for.empty()) {
    const auto comma = forwarded_for.rfind(',');
    const bool is_last = comma == std::string_view::npos;
    const auto before =
        without_port(trimmed(is_last ? forwarded_for : forwarded_for.substr(comma + 1)));
    if (!parse(before)) break;
    client = before;
    forwarded_for = is_last ? std::string_view{} : forwarded_for.substr(0, comma);
  }
  return client;
}

std::string network_of(std::string_view text) {
  constexpr std::array<std::uint8_t, 12> before_ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  const auto address = Networks::parse(text);
  if (!address) return {};
  const bool is_ipv4 = std::equal(before_ipv4.begin(), before_ipv4.end(), address->begin());
  const auto* const bytes = reinterpret_cast<const char*>(address->data());
  return is_ipv4 ? std::string{bytes + before_ipv4.size(), 4} : std::string{bytes, 8};
}

}  // namespace sluice::http
