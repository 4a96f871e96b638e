/// A system of the shop, or a payment provider, to which the service sends: it keeps what it gets.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_value.hpp"
#include "http/server.hpp"
#include "http/serving.hpp"
#include "sluice/webhook.hpp"

namespace sluice::test {

class Receiver {
 public:
  struct Got {
    WebhookHead head;
    std::string key;    ///< Idempotency-Key
    std::string media;  ///< Content-Type
    std::string authorization;
    std::string body;

    JsonValue json() const { return JsonValue::parse(body, {}).value(); }
    std::string text(std::string_view name) const {
      const auto all = json();
      const auto* const value = all.find(name);
      return value && value->as_text() ? *value->as_text() : std::string{};
    }
  };
  /// The status that a request is answered with.
  using Answer = std::function<int(const Got&)>;

  explicit Receiver(Answer answer = [](const Got&) { return 204; })
      : answer_(std::move(answer)), server_(system_clock(), routes(), {.loops = 1}) {}

  std::uint16_t port() const { return server_.port(); }
  std::string url(std::string_view path = "/in") const {
    return fmt::format("http://127.0.0.1:{}{}", port(), path);
  }
  std::vector<Got> got() const {
    const std::lock_guard lock{mutex_};
    return got_;
  }
  std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return got_.size();
  }
  void answers(Answer answer) {
    const std::lock_guard lock{mutex_};
    answer_ = std::move(answer);
  }

 private:
  http::Routes routes() {
    http::Routes routes;
    routes.add(http::route("POST", "/in", "in",
                           [this](http::Request&& request, http::Responder&& respond) {
                             respond.send({.status = take(request)});
                           }));
    return routes;
  }
  int take(const http::Request& request) {
    const auto field = [&](std::string_view name) {
      return std::string{request.field(name).value_or("")};
    };
    Got got{.head = {field("webhook-id"), field("webhook-timestamp"), field("webhook-signature")},
            .key = field("Idempotency-Key"),
            .media = field("Content-Type"),
            .authorization = field("Authorization"),
            .body = request.body()};
    const std::lock_guard lock{mutex_};
    got_.push_back(std::move(got));
    return answer_(got_.back());
  }

  mutable std::mutex mutex_;
  Answer answer_;
  std::vector<Got> got_;
  http::Server server_;
};

}  // namespace sluice::test
