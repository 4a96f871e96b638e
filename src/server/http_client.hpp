/// Asks other HTTP servers: receivers of messages, payment providers, proxies.
///
/// Guarantee: a request ends within its limits, whatever the server does. An address that is not
///   public is refused when it is connected to, so that neither a name that points elsewhere after
///   a check, nor a redirect (none is followed), nor another spelling leads into a private network;
///   no proxy of the environment is asked. TLS certificates are verified.
/// Not guaranteed: that a request which failed was not served: its Error has effect `unknown` from
///   when it was sent.
/// Threads: one at a time, but for stop(). Connections are kept for the next request.
///
///     HttpClient client;
///     const auto answer = client.post("https://shop.example/hook", {{"webhook-id", "1"}}, body);
///     if (answer.status / 100 == 2) ...
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::server {

struct HttpClientOptions {
  std::chrono::milliseconds connect{5'000};  ///< for name, address and TLS
  std::chrono::milliseconds whole{15'000};   ///< from the name to the last byte of the answer
  std::size_t head = std::size_t{64} << 10;  ///< bytes of an answer's fields; more is a failure
  std::size_t body = std::size_t{64} << 10;  ///< bytes of its body; the rest is not read
  bool allows_private = false;               ///< addresses that are not public, too
  /// What is under way when stop() comes has so much more time.
  std::chrono::milliseconds after_stop{2'000};
  std::string authority = {};             ///< a file of certificates; empty: the system's
  std::vector<std::string> resolve = {};  ///< "shop.example:443:10.0.0.1": instead of asking
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::chrono::seconds retry_after{0};  ///< as its field of that name says, seconds or a date
  bool is_cut = false;                  ///< the body went on
};

using HttpFields = std::vector<std::pair<std::string, std::string>>;

class HttpClient {
 public:
  explicit HttpClient(HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Throws Error: bad_argument (no URL, as check_http_url()), connection (not reached, refused, or
  /// no HTTP came), timeout, authentication (its certificate), closed (stop() came). What it says
  /// shows no path and no query of the URL: there may be secrets in it.
  HttpAnswer post(const std::string& url, const HttpFields& fields, std::string_view body);
  HttpAnswer get(const std::string& url, const HttpFields& fields = {});

  /// From any thread: what is under way ends soon, and nothing more is asked.
  void stop() noexcept { is_stopped_.store(true, std::memory_order_relaxed); }

 private:
  struct Call;
  HttpAnswer ask(Call& call);

  const HttpClientOptions options_;
  std::atomic<bool> is_stopped_{false};
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  std::unique_ptr<void, Close> handle_;
};

/// Throws Error{bad_argument}: it is no URL of http or https, has a user or password in it, a
/// fragment, control characters, or more than 2000 bytes.
void check_http_url(std::string_view url);

/// Of a URL that check_http_url() takes, what may be shown: "https://shop.example:8443".
std::string origin_of(const std::string& url);

/// Whether its host is written as an address that is not public, or "localhost", so that nobody
/// has to wait for a connection to learn that it is refused.
bool is_private_by_its_text(const std::string& url);

}  // namespace sluice::server
