/// Where a node listens, as servers tell it, and the redirections that name such places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::topology {

struct Endpoint {
  std::string host;  ///< a name or a numeric address, without brackets
  std::uint16_t port = 0;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// "10.0.0.1:6379", "[::1]:6379".
std::string to_string(const Endpoint& endpoint);

/// What a host in an answer means. Null and "" (cluster-preferred-endpoint-type unknown-endpoint)
/// are the host that has answered; "?" (a hostname that was not announced) is unknown: nothing.
/// Throws Error{protocol} for what cannot be a host.
std::optional<std::string> told_host(std::string_view host, const Endpoint& answerer);
/// Throws Error{protocol} for what is no port of 1 to 65535.
std::uint16_t told_port(std::string_view port);
std::uint16_t told_port(std::int64_t port);

/// MOVED or ASK: the command was not executed.
struct Redirection {
  bool is_ask = false;  ///< for this one command; the map stays
  std::uint16_t slot = 0;
  std::optional<Endpoint> to;  ///< nothing: the server does not know the name of the node

  friend bool operator==(const Redirection&, const Redirection&) = default;
};

/// Says that a command was not executed, and may be later or elsewhere: MOVED, ASK, TRYAGAIN,
/// CLUSTERDOWN, LOADING, MASTERDOWN, READONLY, UNBLOCKED (resp/server_words.hpp). `error`: without
/// the '-' of the wire.
bool is_refusal(std::string_view error) noexcept;
/// The same of a command that runs a script, which may end with any error after it has written: in
/// the very words that servers have for it, and a redirection has to be one of its `slot`.
bool is_refusal_of_script(std::string_view error, std::optional<std::uint16_t> slot) noexcept;
/// AUTH says so where a server has no password (Redis 6 and later, and those before): a client
/// that came with one may go on without.
inline bool is_without_password(std::string_view error) noexcept {
  return error.contains("without any password configured") || error.contains("no password is set");
}
/// Nothing: `error` is another error reply. Throws Error{protocol} for a redirection that is none.
std::optional<Redirection> parse_redirection(std::string_view error, const Endpoint& answerer);

}  // namespace sluice::topology

template <>
struct std::hash<sluice::topology::Endpoint> {
  std::size_t operator()(const sluice::topology::Endpoint& endpoint) const noexcept {
    return std::hash<std::string>{}(endpoint.host) * 31 + endpoint.port;
  }
};
