/// A browser without scripts: it keeps cookies, sends the forms that it was shown, and goes where
/// it is sent.
#pragma once

#include <map>
#include <regex>
#include <string>

#include "http/text.hpp"
#include "server/curl.hpp"

namespace sluice::test {

class Browser {
 public:
  explicit Browser(std::uint16_t port) : port_(port) {}

  /// Follows what is answered by 303.
  Answer get(const std::string& path) { return follow(path, send("GET", path)); }
  /// One request. `more`: fields, each with its line end.
  Answer send(std::string_view method, const std::string& path, std::string_view body = {},
              std::string_view more = {}) {
    auto request = fmt::format("{} {} HTTP/1.1\r\nHost: shop\r\nContent-Length: {}\r\n{}", method,
                               path, body.size(), more);
    if (method == "POST") request += "Content-Type: application/x-www-form-urlencoded\r\n";
    if (const auto cookies = cookies_for(path); !cookies.empty())
      request += fmt::format("Cookie: {}\r\n", cookies);
    http::RawClient client{port_};
    const auto whole = client.ask(request + "\r\n" + std::string{body});
    const auto end = whole.find("\r\n\r\n");
    if (end == std::string::npos) return {};
    Answer answer{std::stoi(whole.substr(9, 3)), whole.substr(0, end), whole.substr(end + 4)};
    keep_cookies(answer.head);
    return answer;
  }

  /// What the form of a page whose action ends so would send. Empty: it has none.
  struct Shown {
    std::string action;
    std::string body;
  };
  static Shown form(const Answer& page, const std::string& action_ends,
                    const std::string& more = {}) {
    const std::regex forms{R"re(<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)</form>)re"};
    const std::regex inputs{R"re(<input type="hidden" name="([^"]*)" value="([^"]*)">)re"};
    for (std::sregex_iterator at{page.body.begin(), page.body.end(), forms}, end; at != end; ++at) {
      Shown shown{(*at)[1], more};
      if (!shown.action.ends_with(action_ends)) continue;
      const std::string inside = (*at)[2];
      for (std::sregex_iterator in{inside.begin(), inside.end(), inputs}; in != end; ++in)
        shown.body += fmt::format("{}{}={}", shown.body.empty() ? "" : "&", (*in)[1].str(),
                                  http::escape((*in)[2].str()));
      return shown;
    }
    return {};
  }
  /// Sends it, and follows.
  Answer submit(const Answer& page, const std::string& action_ends, const std::string& more = {}) {
    const auto shown = form(page, action_ends, more);
    if (shown.action.empty()) return {};
    return follow(shown.action, send("POST", shown.action, shown.body));
  }

  /// Where it is.
  const std::string& path() const noexcept { return path_; }
  std::string cookie(const std::string& name) const {
    const auto found = cookies_.find(name);
    return found == cookies_.end() ? std::string{} : found->second.value;
  }
  void set_cookie(const std::string& name, std::string value) {
    cookies_[name] = {std::move(value), "/sales"};
  }

  std::string cookies_for(const std::string& path) const {
    std::string line;
    for (const auto& [name, kept] : cookies_) {
      const bool is_below = path.starts_with(kept.path) &&
                            (kept.path == "/" || path.size() == kept.path.size() ||
                             path[kept.path.size()] == '/' || path[kept.path.size()] == '?');
      if (is_below) line += fmt::format("{}{}={}", line.empty() ? "" : "; ", name, kept.value);
    }
    return line;
  }

 private:
  struct Kept {
    std::string value;
    std::string path;
  };

  Answer follow(std::string path, Answer answer) {
    for (int i = 0; i < 5 && answer.status == 303; ++i) {
      const auto at = answer.head.find("Location: ") + 10;
      path = answer.head.substr(at, answer.head.find("\r\n", at) - at);
      answer = send("GET", path);
    }
    path_ = path;
    return answer;
  }
  void keep_cookies(const std::string& head) {
    const std::regex lines{R"re(Set-Cookie: ([^=]*)=([^;\r]*)([^\r]*))re"};
    for (std::sregex_iterator at{head.begin(), head.end(), lines}, end; at != end; ++at) {
      const std::string attributes = (*at)[3];
      const auto path = attributes.find("Path=") + 5;
      if (attributes.find("Max-Age=0") != std::string::npos)
        cookies_.erase((*at)[1]);
      else
        cookies_[(*at)[1]] = {(*at)[2], attributes.substr(path, attributes.find(';', path) - path)};
    }
  }

  std::uint16_t port_;
  std::map<std::string, Kept> cookies_;
  std::string path_;
};

}  // namespace sluice::test
