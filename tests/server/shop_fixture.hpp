/// A service on an embedded engine and SQLite.
#pragma once

#include <gtest/gtest.h>

#include "engine/embedded_store.hpp"
#include "server/curl.hpp"
#include "server/openapi_check.hpp"
#include "server/service.hpp"
#include "support/comes_true.hpp"
#include "support/temp_dir.hpp"

namespace sluice::server {

using namespace std::chrono_literals;
using test::Answer;
using test::Fields;

class ShopTest : public testing::Test {
 protected:
  ServiceOptions options() const {
    ServiceOptions options;
    options.shop.orders = "sqlite:" + (folder_ / "orders.db").string();
    options.shop.worker.claim_after = 1s;
    options.http.loops = 1;
    options.look_every = 20ms;
    return options;
  }

  /// Who is at this machine needs no key.
  ServiceOptions of_this_machine() const {
    auto options = this->options();
    options.has_local_operator = true;
    return options;
  }

  void begin(std::vector<SaleDefinition> sales, std::optional<ServiceOptions> how = {}) {
    check_.reset();
    service_.reset();
    service_ = std::make_unique<Service>(*store_, how ? *how : options(), sales);
    if (!how || (how->http.proxy_protocol.empty() && !how->http.listen.is_unix()))
      check_.emplace(test::ask(service_->port(), "GET", "/openapi.json").body);
  }

  Answer ask(std::string_view method, std::string_view path, Fields fields = {},
             std::string_view body = {}) const {
    return ask(method, path, std::span{fields.begin(), fields.size()}, body);
  }
  Answer ask(std::string_view method, std::string_view path,
             std::span<const std::pair<std::string_view, std::string_view>> fields,
             std::string_view body = {}) const {
    auto answer = test::ask(service_->port(), method, path, fields, body);
    if (check_) check_->look(method, path, answer);  // SV17
    return answer;
  }
  Answer buy(std::string_view buyer, std::string_view key, std::string_view body = {},
             std::string_view sale = "tea") const {
    return ask("POST", fmt::format("/v1/sales/{}/orders", sale),
               {{"Sluice-Buyer", buyer}, {"Idempotency-Key", key}}, body);
  }

  test::TempDir folder_;
  std::unique_ptr<Store> store_ = engine::open_embedded();
  std::unique_ptr<Service> service_;

 private:
  std::optional<OpenApiCheck> check_;
};

/// At a price: 5 CNY a unit, to be paid within an hour.
inline SaleDefinition paid_tea(std::int64_t stock,
                               PaymentTerms terms = {.price = 500, .currency = "CNY"}) {
  return {.name = "tea", .stock = stock, .number_type = "TEA", .payment = terms};
}

inline SaleDefinition tea(std::int64_t stock, std::int64_t limit = 1) {
  return {.name = "tea", .stock = stock, .limit = limit, .number_type = "TEA"};
}

}  // namespace sluice::server
