#include "base/url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice {

void refuse(const std::string& why) { throw Error{Errc::bad_argument, why}; }

void refuse_unknown_settings(const Url& url, std::span<const std::string_view> known) {
  for (const auto& [name, value] : url.query)
    if (std::ranges::find(known, name) == known.end())
      refuse(fmt::format("'{}' is no setting of {}: there are {}", name, url.scheme,
                         fmt::join(known, ", ")));
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view{"-._~"}.find(c) != std::string_view::npos;
    if (plain)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

namespace {

constexpr std::size_t most_servers = 1000;

std::string decode(std::string_view text, std::string_view what) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const auto byte = parse_integer<std::uint8_t>(text.substr(i + 1, 2), 16);
    if (!byte || i + 2 >= text.size())
      refuse(fmt::format(
          "the {} of the URL has a '%' without two hex digits after it; write a plain one as %25",
          what));
    plain += static_cast<char>(*byte);
    i += 2;
  }
  return plain;
}

/// Of a part that the system takes, for which a text ends at a NUL.
std::string decode_printable(std::string_view text, std::string_view what) {
  std::string plain = decode(text, what);
  if (std::ranges::any_of(plain, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    refuse(fmt::format("the {} of the URL has a control character in it", what));
  return plain;
}

/// Cuts `text` at the first `mark`; what comes after it, or nothing.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

void parse_query(std::string_view query, Url& url) {
  while (!query.empty()) {
    const auto next = cut(query, '&');
    const auto value = cut(query, '=');
    const auto name = decode_printable(query, "settings");
    if (!value)
      refuse(fmt::format("the setting '{}' of the URL has no value: write {}=VALUE", name, name));
    if (!url.query.emplace(name, decode_printable(*value, "settings")).second)
      refuse(fmt::format("the setting '{}' stands twice in the URL", name));
    query = next.value_or("");
  }
}

Url::Server parse_server(std::string_view text) {
  Url::Server server;
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) refuse("the IPv6 address of the URL has no closing ']'");
    server.host = text.substr(1, end - 1);
    if (server.host.empty()) refuse("the brackets of the URL hold no IPv6 address");
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':')
      refuse(fmt::format("'{}' stands after the IPv6 address of the URL", rest));
    if (!rest.empty()) port = rest.substr(1);
  } else {
    port = cut(text, ':');
    if (port && port->find(':') != std::string_view::npos)
      refuse("the host of the URL has several ':'; an IPv6 address stands in brackets: [::1]");
    server.host = decode_printable(text, "host");
  }
  if (port) {
    // It is not shown: it may be a part of a password.
    if (port->find_first_not_of("0123456789") != std::string_view::npos)
      refuse(
          "the port of the URL is a number of 0 to 65535; in a password write '/' as %2F, '?' as "
          "%3F and '@' as %40");
    const auto number = parse_number(*port, 65535, "port");
    if (number == 0) refuse("port 0 is not one to connect to");
    server.port = static_cast<std::uint16_t>(number);
  }
  return server;
}

/// "user:password@host:port,host:port"; what precedes the last '@' is the user's.
void parse_authority(std::string_view text, Url& url) {
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    auto user = text.substr(0, at);
    text = text.substr(at + 1);
    if (const auto password = cut(user, ':')) url.password = decode(*password, "password");
    url.user = decode(user, "user");
  }
  for (std::optional<std::string_view> next = text; next;) {
    auto server = *next;
    next = cut(server, ',');
    url.servers.push_back(parse_server(server));
    if (text.find(',') != std::string_view::npos && url.servers.back().host.empty())
      refuse("the URL names several servers, and one of them is empty: h1:6379,h2:6379");
  }
  if (url.servers.size() > most_servers)
    refuse(fmt::format("the URL names {} servers, and {} are the most", url.servers.size(),
                       most_servers));
}

}  // namespace

Url parse_url(std::string_view text) {
  Url url;
  const auto rest = cut(text, ':');
  if (!rest) refuse("this is no URL: it has no scheme, such as embedded: or redis://");
  url.scheme = text;
  std::transform(url.scheme.begin(), url.scheme.end(), url.scheme.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : static_cast<char>(c);
  });

  auto hierarchy = *rest;
  if (hierarchy.find('#') != std::string_view::npos) refuse("the URL has a '#'; write it as %23");
  const auto query = cut(hierarchy, '?');
  if (hierarchy.starts_with("//")) {
    url.has_authority = true;
    hierarchy.remove_prefix(2);
    const auto slash = std::min(hierarchy.find('/'), hierarchy.size());
    // What stands before it is the rest of a password, and what is not shown cannot be wrong.
    if (hierarchy.find('@', slash) != std::string_view::npos ||
        (query && query->find('@') != std::string_view::npos))
      refuse(
          "the URL has an '@' behind its host; in a password write '/' as %2F, '?' as %3F and '@' "
          "as %40, and elsewhere '@' as %40");
    parse_authority(hierarchy.substr(0, slash), url);
    hierarchy.remove_prefix(slash);
  }
  url.path = decode_printable(hierarchy, "path");
  if (hierarchy.starts_with('/')) hierarchy.remove_prefix(1);
  for (std::optional<std::string_view> next = hierarchy; next;) {
    auto segment = *next;
    next = cut(segment, '/');
    url.segments.push_back(decode_printable(segment, "path"));
  }
  if (query) parse_query(*query, url);
  return url;
}

std::uint64_t parse_number(std::string_view text, std::uint64_t most, std::string_view what) {
  const auto number = parse_integer<std::uint64_t>(text);
  if (!number || *number > most)
    refuse(fmt::format("the {} of the URL is a number of 0 to {}, not '{}'", what, most, text));
  return *number;
}

}  // namespace sluice
