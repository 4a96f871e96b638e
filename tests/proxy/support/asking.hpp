/// Commands and replies as texts, for tests of what a client sees.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "proxy/support/proxy_under_test.hpp"
#include "resp/writer.hpp"
#include "support/comes_true.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {

/// "SET key value" as a request; words are what stands between blanks.
inline std::string request(const std::string& line) {
  std::istringstream stream{line};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  const std::vector<std::string_view> views{words.begin(), words.end()};
  std::string bytes;
  resp::append_command(bytes, views);
  return bytes;
}

/// As RESP3 would have it, with blanks for line ends: "+OK", "*2 $1 a $1 b", "_".
inline std::string text_of(const Value& value) {
  std::string bytes;
  resp::ReplyWriter{bytes, 3}.value(value);
  for (std::size_t at; (at = bytes.find("\r\n")) != std::string::npos;)
    bytes.replace(at, 2, at + 2 == bytes.size() ? "" : " ");
  return bytes;
}

inline std::string ask(PlainClient& client, const std::string& line) {
  client.send(request(line));
  return text_of(client.read());
}

/// Exactly `size` bytes of what comes.
inline std::string read_bytes(PlainClient& client, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    const auto more = client.read_raw(size - bytes.size());
    if (more.empty()) break;
    bytes += more;
  }
  return bytes;
}

/// The replies to all lines, sent in one write.
inline std::vector<std::string> ask_all(PlainClient& client,
                                        const std::vector<std::string>& lines) {
  std::string bytes;
  for (const auto& line : lines) bytes += request(line);
  client.send(bytes);
  std::vector<std::string> replies;
  for (std::size_t i = 0; i < lines.size(); ++i) replies.push_back(text_of(client.read()));
  return replies;
}

/// Lets time pass for a proxy on a VirtualClock until something comes. Empty: nothing does.
inline std::optional<Value> read_as_time_passes(PlainClient& client, ProxyUnderTest& proxy) {
  constexpr std::chrono::milliseconds pause{5}, step{50};
  std::optional<Value> value;
  for (int left = 4000; left > 0 && !value; --left) {
    value = client.read_for(pause);
    if (!value) proxy.pass(step);
  }
  return value;
}

inline std::string ask_as_time_passes(PlainClient& client, const std::string& line,
                                      ProxyUnderTest& proxy) {
  client.send(request(line));
  const auto reply = read_as_time_passes(client, proxy);
  return reply ? text_of(*reply) : "no reply";
}

inline bool is_closed_as_time_passes(PlainClient& client, ProxyUnderTest& proxy) try {
  static_cast<void>(read_as_time_passes(client, proxy));
  return false;
} catch (const std::system_error& error) {
  return error.code() == std::errc::connection_reset;
}

/// What INFO of a server says of `field`.
inline std::string info_of(PlainClient& server, std::string_view field) {
  const auto info = ask(server, "INFO");
  const auto at = info.find(fmt::format(" {}:", field));
  if (at == std::string::npos) return {};
  const auto from = at + field.size() + 2;
  return info.substr(from, info.find(' ', from) - from);
}

}  // namespace sluice::test
