// What a loop finds in one turn is one admission.
#include <fmt/format.h>

#include <atomic>

#include "shop_fixture.hpp"
#include "support/faulty_store.hpp"

namespace sluice::server {
namespace {

class OneTurn : public ShopTest {
 protected:
  OneTurn() : inner_(std::move(store_)) {
    auto counted = std::make_unique<test::FaultyStore>(*inner_);
    counted_ = counted.get();
    counted_->plan = [this](std::string_view call) {
      return fails_ && call == "sale/admit" ? test::Fault::refused : test::Fault::none;
    };
    store_ = std::move(counted);
  }
  ~OneTurn() override {
    service_.reset();
    store_.reset();
  }

  std::unique_ptr<Store> inner_;
  test::FaultyStore* counted_ = nullptr;
  std::atomic<bool> fails_{false};
};

std::string purchase(int buyer) {
  return fmt::format(
      "POST /v1/sales/tea/orders HTTP/1.1\r\nHost: shop\r\nSluice-Buyer: b{}\r\n"
      "Idempotency-Key: k\r\nContent-Length: 0\r\n\r\n",
      buyer);
}

TEST_F(OneTurn, V42_PurchasesOfOneTurnAreOneAdmissionAndAnsweredInOrder) {
  begin({tea(10)});
  constexpr int together = 16;
  std::string all;
  for (int buyer = 0; buyer < together; ++buyer) all += purchase(buyer);
  const auto before = counted_->executed("sale/admit");
  http::RawClient client{service_->port()};
  client.send(all);
  for (int buyer = 0; buyer < together; ++buyer) {
    const auto answer = client.answer();
    EXPECT_TRUE(answer.starts_with(buyer < 10 ? "HTTP/1.1 201" : "HTTP/1.1 409")) << answer;
  }
  EXPECT_EQ(counted_->executed("sale/admit"), before + 1);
}

TEST_F(OneTurn, APurchaseAloneWaitsForNoOther) {
  begin({tea(10)});
  const auto before = counted_->executed("sale/admit");
  for (int buyer = 0; buyer < 5; ++buyer)
    EXPECT_EQ(buy(fmt::format("b{}", buyer), "k").status, 201);
  EXPECT_EQ(counted_->executed("sale/admit"), before + 5);
}

TEST_F(OneTurn, AFailureOfTheStoreGoesToEachOfThem) {
  begin({tea(10)});
  fails_ = true;
  http::RawClient client{service_->port()};
  client.send(purchase(1) + purchase(2));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 503"));
  fails_ = false;
  EXPECT_EQ(buy("b1", "k").status, 201);
}

}  // namespace
}  // namespace sluice::server
