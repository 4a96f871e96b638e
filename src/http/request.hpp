/// One request as a handler gets it. It owns its bytes, so that it may go to another thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::http {

struct Field {
  std::string_view name;
  std::string_view value;
};

class Request {
 public:
  Request() = default;
  Request(Request&&) = default;
  Request& operator=(Request&&) = default;

  std::string_view method() const noexcept { return method_; }
  /// As it was sent, with its escapes; it begins with '/'.
  std::string_view path() const noexcept { return path_; }
  /// What stands for `{name}` in the route's template, unescaped; UTF-8. REQUIRES: it has one.
  const std::string& parameter(std::string_view name) const;
  /// The first of that name in the query, unescaped. Empty: there is none, or it is no UTF-8.
  std::optional<std::string> query(std::string_view name) const;

  /// As it was sent, without its '?'.
  std::string_view raw_query() const noexcept { return query_; }

  /// The first field of that name, whatever its case. Trailers are no fields.
  std::optional<std::string_view> field(std::string_view name) const noexcept;
  /// How often it was sent: what must be there once is refused when it is there twice.
  std::size_t count(std::string_view name) const noexcept;
  /// All of them, in order.
  const std::vector<Field>& fields() const noexcept { return fields_; }

  const std::string& body() const noexcept { return body_; }

  /// The client's address without its port: that of the connection or, behind one of the networks
  /// of ServerOptions::trusted, what X-Forwarded-For says. Empty for a unix socket.
  const std::string& client() const noexcept { return client_; }
  /// Its connection to us is encrypted.
  bool is_tls() const noexcept { return tls_; }
  /// So it is, or that of the client to a proxy which says so (X-Forwarded-Proto). A client that
  /// says so itself closes more for itself alone.
  bool came_by_tls() const noexcept { return tls_ || field("X-Forwarded-Proto") == "https"; }
  bool is_http_1_0() const noexcept { return version_ == 10; }

 private:
  friend class RequestReader;
  friend class Routes;
  friend class Connection;

  std::vector<char> head_;  // views below lie in it; it keeps its address when it is moved
  std::string_view method_;
  std::string_view path_;
  std::string_view query_;
  std::vector<Field> fields_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  std::string body_;
  std::string client_;
  int version_ = 11;
  bool tls_ = false;
  bool keep_alive_ = true;
};

}  // namespace sluice::http
