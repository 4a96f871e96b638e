#include "topology/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash_slot.hpp"
#include "base/integer.hpp"
#include "resp/server_words.hpp"
#include "sluice/error.hpp"

namespace sluice::topology {
namespace {

constexpr std::size_t longest_host = 255;

[[noreturn]] void refuse_redirection(std::string_view error, const Endpoint& answerer) {
  throw Error{Errc::protocol, fmt::format("{} redirects to no place: '{}'", to_string(answerer),
                                          error.substr(0, 200))};
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

std::optional<std::string> told_host(std::string_view host, const Endpoint& answerer) {
  if (host.empty()) return answerer.host;
  if (host == "?") return std::nullopt;
  const bool is_host =
      host.size() <= longest_host && std::ranges::all_of(host, [](char c) {
        return c > ' ' && c < 0x7f && std::string_view{"@,/[]"}.find(c) == std::string_view::npos;
      });
  if (!is_host)
    throw Error{Errc::protocol,
                fmt::format("{} tells of a node whose host is none", to_string(answerer))};
  return std::string{host};
}

std::uint16_t told_port(std::string_view port) {
  const auto number = parse_integer<std::uint16_t>(port);
  if (!number || *number == 0)
    throw Error{Errc::protocol, fmt::format("'{}' is no port of a node", port.substr(0, 20))};
  return *number;
}

std::uint16_t told_port(std::int64_t port) {
  if (port < 1 || port > 65535)
    throw Error{Errc::protocol, fmt::format("{} is no port of a node", port)};
  return static_cast<std::uint16_t>(port);
}

namespace {

bool is_redirection(resp::ServerState state) noexcept {
  return state == resp::ServerState::moved || state == resp::ServerState::asking;
}

std::optional<std::uint16_t> slot_told(std::string_view redirection) noexcept {
  const auto rest = redirection.substr(redirection.find(' ') + 1);
  return parse_integer<std::uint16_t>(rest.substr(0, rest.find(' ')));
}

}  // namespace

bool is_refusal(std::string_view error) noexcept {
  const auto state = resp::state_told(error, false);
  return state && resp::is_passing(*state);
}

bool is_refusal_of_script(std::string_view error, std::optional<std::uint16_t> slot) noexcept {
  const auto state = resp::state_told(error, true);
  if (!state || !resp::is_passing(*state)) return false;
  return !is_redirection(*state) || !slot || slot_told(error) == slot;
}

std::optional<Redirection> parse_redirection(std::string_view error, const Endpoint& answerer) {
  const bool is_ask = error.starts_with("ASK ");
  if (!is_ask && !error.starts_with("MOVED ")) return std::nullopt;
  auto rest = error.substr(error.find(' ') + 1);
  const auto blank = rest.find(' ');
  const auto slot = parse_integer<std::uint16_t>(rest.substr(0, blank));
  const auto colon = rest.rfind(':');
  if (blank == rest.npos || !slot || *slot >= hash_slots || colon == rest.npos || colon <= blank)
    refuse_redirection(error, answerer);
  const auto port = parse_integer<std::uint16_t>(rest.substr(colon + 1));
  if (!port || *port == 0) refuse_redirection(error, answerer);

  Redirection redirection{.is_ask = is_ask, .slot = *slot, .to = {}};
  if (auto host = told_host(rest.substr(blank + 1, colon - blank - 1), answerer))
    redirection.to = Endpoint{std::move(*host), *port};
  return redirection;
}

}  // namespace sluice::topology
