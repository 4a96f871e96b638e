/// Headers of the PROXY protocol, as HAProxy's `send-proxy-v2` writes them.
#pragma once

#include <arpa/inet.h>

#include <string>
#include <string_view>

namespace sluice::http {

/// `command`: 0x20 LOCAL, 0x21 PROXY.
inline std::string proxy_header(int command, int family, std::string_view rest) {
  std::string bytes{"\r\n\r\n\0\r\nQUIT\n", 12};
  bytes += static_cast<char>(command);
  bytes += static_cast<char>(family);
  bytes += static_cast<char>(rest.size() >> 8);
  bytes += static_cast<char>(rest.size() & 0xFF);
  return bytes.append(rest);
}

/// Source, destination, and the ports of both.
inline std::string proxy_v4(const char* client, std::string_view extensions = {}) {
  std::string rest(12, '\x7f');
  ::inet_pton(AF_INET, client, rest.data());
  return proxy_header(0x21, 0x11, rest.append(extensions));
}
inline std::string proxy_v6(const char* client, std::string_view extensions = {}) {
  std::string rest(36, '\x01');
  ::inet_pton(AF_INET6, client, rest.data());
  return proxy_header(0x21, 0x21, rest.append(extensions));
}
inline std::string proxy_unix() { return proxy_header(0x21, 0x31, std::string(216, '\0')); }

}  // namespace sluice::http
