/// A client of the service that is not ours: a socket is enough to say what a browser says.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_value.hpp"
#include "http/client.hpp"

namespace sluice::test {

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  JsonValue json() const { return JsonValue::parse(body, {.bytes = 1 << 20}).value(); }
  /// A member of the body that is a text; empty: there is none.
  std::string text(std::string_view name) const {
    const auto all = json();
    const auto* const value = all.find(name);
    return value && value->as_text() ? *value->as_text() : std::string{};
  }
  /// The end of a problem's type: "sold-out".
  std::string problem() const {
    const auto type = text("type");
    return type.substr(type.rfind(':') + 1);
  }
  /// An order that the database has.
  bool is_recorded() const { return status == 200 && body.contains("\"recorded\":true"); }
  bool has(std::string_view field) const { return head.find(field) != std::string::npos; }
};

using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// One request on a connection of its own, by a name of this machine.
inline Answer ask(std::uint16_t port, std::string_view method, std::string_view path,
                  std::span<const std::pair<std::string_view, std::string_view>> fields,
                  std::string_view body = {}) {
  auto request = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n", method,
                             path, body.size());
  for (const auto& [name, value] : fields) request += fmt::format("{}: {}\r\n", name, value);
  request += fmt::format("\r\n{}", body);
  http::RawClient client{port};
  const auto whole = client.ask(request);
  const auto end = whole.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  return {std::stoi(whole.substr(9, 3)), whole.substr(0, end), whole.substr(end + 4)};
}

inline Answer ask(std::uint16_t port, std::string_view method, std::string_view path,
                  Fields fields = {}, std::string_view body = {}) {
  return ask(port, method, path, std::span{fields.begin(), fields.size()}, body);
}

}  // namespace sluice::test
