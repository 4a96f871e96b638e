// V54: buyers buy, pay, cancel and let expire over HTTP, the shop takes units back and gives money
// back, and strangers begin with stores of their own, while every process is killed, again and
// again, and all at once; at the end the sale is archived. What everybody was told is compared with
// what stands in the database, and with the refunds that the provider was asked for.
// SLUICE_STORM_SECONDS: how long (scripts/service_storm); SLUICE_SEED repeats the kills.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "server/curl.hpp"
#include "server/storm_shop.hpp"
#include "sluice/open.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale_audit.hpp"
#include "support/comes_true.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

const HmacPayments acme{"acme", WebhookKeys{{test::storm_secret}}};

enum class Wish : std::uint8_t { pays, cancels, leaves, pays_for_less, pays_early, sends_back };
constexpr std::string_view names_of_wishes[] = {"pays",
                                                "cancels",
                                                "leaves",
                                                "pays for what is left of three units",
                                                "pays for three units and sends one back",
                                                "pays and sends back"};
constexpr std::int64_t price = 500;

/// What a buyer was told, and nothing that he was not.
struct Told {
  Wish wish = Wish::leaves;
  std::string id;  ///< of his order; empty: sold out
  std::string number;
  bool is_paid = false;       ///< his payment was taken: 204
  bool is_cancelled = false;  ///< his order is cancelled: 200
  bool has_ended = false;     ///< it had expired before units were taken back: 409
  std::int64_t units = 1;
  std::int64_t taken_back = 0;
};

std::string text_of(const std::string& buyer, const Told& told) {
  return fmt::format(
      "{} {}, was told of {} {}{}{}{}", buyer, names_of_wishes[static_cast<std::size_t>(told.wish)],
      told.number.empty() ? "sold out" : told.number, told.id, told.is_paid ? ", paid" : "",
      told.is_cancelled ? ", cancelled" : "", told.has_ended ? ", ended" : "");
}

struct Plan {
  std::chrono::seconds lasts;
  int buyers;
  std::int64_t stock;
  bool is_long;
};

Plan plan_of_this_run() {
  const auto* const given = std::getenv("SLUICE_STORM_SECONDS");
  const auto seconds = given ? std::stoi(given) : 6;
  const int buyers = std::max(1000, 40 * seconds);
  return {std::chrono::seconds{seconds}, buyers, buyers * 4 / 10, given != nullptr};
}

std::mt19937 random_source() {
  const auto* const given = std::getenv("SLUICE_SEED");
  const auto seed = given ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
  std::cout << "SLUICE_SEED=" << seed << '\n';
  return std::mt19937{seed};
}

/// The buyers of one thread. They ask each process in its turn until one answers for good.
class Buyers {
 public:
  Buyers(const std::vector<std::uint16_t>& ports, std::string shop_key,
         const std::atomic<bool>& stopped)
      : ports_(ports), shop_key_(std::move(shop_key)), stopped_(stopped) {}

  /// Empty: the test has been stopped.
  std::optional<Told> visit(int index, const std::string& buyer) {
    Told told{.wish = static_cast<Wish>(index % std::size(names_of_wishes))};
    if (told.wish == Wish::pays_for_less || told.wish == Wish::pays_early) told.units = 3;
    const auto bought = click(buyer, told);
    if (!bought) return {};
    if (bought->status == 409) {
      EXPECT_THAT(bought->problem(), testing::AnyOf("sold-out", "not-enough"))
          << buyer << bought->body;
      return told;
    }
    told.id = bought->text("id");
    told.number = bought->text("number");
    if (index % 5 == 0 && !click_again(buyer, told)) return {};
    using enum Wish;
    if (told.wish == pays_for_less && !take_back(buyer, told, 1)) return {};
    const bool pays_at_last = told.wish != cancels && told.wish != leaves;
    if (pays_at_last && !pay(buyer, told)) return {};
    if (told.wish == pays_early && !take_back(buyer, told, 1)) return {};
    if (told.wish == sends_back && !take_back(buyer, told, 1)) return {};
    if (told.wish == cancels && !cancel(buyer, told)) return {};
    return told;
  }

 private:
  /// Until the answer is none of those that say "later". Empty: the test has been stopped.
  template <class Ask>
  std::optional<test::Answer> until_answered(const Ask& asks) {
    std::map<std::string, int> refusals;
    while (!stopped_) {
      const auto port = ports_[next_++ % ports_.size()];
      test::Answer answer;
      try {
        answer = asks(port);
      } catch (const std::system_error& failure) {  // nobody listens: it is dead
        ++refusals[failure.code().message()];
      }
      if (answer.status != 0 && answer.status != 429 && answer.status != 503) return answer;
      ++refusals[fmt::format("{} {}", answer.status, answer.status == 0 ? "" : answer.body)];
      std::this_thread::sleep_for(50ms);  // Retry-After says more
    }
    for (const auto& [why, count] : refusals) std::cout << count << " times " << why << '\n';
    return {};
  }

  std::optional<test::Answer> click(const std::string& buyer, const Told& told) {
    return until_answered([&](std::uint16_t port) {
      auto answer = test::ask(port, "POST", "/v1/sales/tea/orders",
                              {{"Sluice-Buyer", buyer}, {"Idempotency-Key", "k"}},
                              fmt::format(R"({{"units":{}}})", told.units));
      // V22: a purchase never waits for the database.
      EXPECT_FALSE(answer.status == 503 && answer.problem() == "database-failed") << answer.body;
      return answer;
    });
  }

  bool click_again(const std::string& buyer, const Told& told) {
    const auto again = click(buyer, told);
    if (!again) return false;
    if (again->status == 409) {  // it has expired meanwhile
      EXPECT_EQ(again->problem(), "order-ended") << again->body;
      return true;
    }
    EXPECT_EQ(again->status, 200) << buyer << again->body;
    EXPECT_EQ(again->text("id"), told.id) << buyer;
    EXPECT_EQ(again->text("number"), told.number) << buyer;
    return true;
  }

  bool pay(const std::string& buyer, Told& told) {
    const Payment payment{.provider = "acme",
                          .event = "evt_" + told.number,
                          .sale = "tea",
                          .order = told.number,
                          .amount = price * (told.units - told.taken_back),
                          .currency = "CNY"};
    const auto body = HmacPayments::body_of(payment);
    const auto answer = until_answered([&](std::uint16_t port) {
      const auto head = acme.sign(body, payment.event, system_clock().wall());
      return test::ask(port, "POST", "/v1/payments/acme",
                       {{"webhook-id", head.id},
                        {"webhook-timestamp", head.timestamp},
                        {"webhook-signature", head.signature}},
                       body);
    });
    if (!answer) return false;
    EXPECT_EQ(answer->status, 204) << buyer << answer->body;
    told.is_paid = answer->status == 204;
    return true;
  }

  /// By the shop, whose key a repeat has, too.
  bool take_back(const std::string& buyer, Told& told, std::int64_t units) {
    const auto answer = until_answered([&](std::uint16_t port) {
      return test::ask(port, "POST", "/v1/sales/tea/orders/" + told.id + "/refund",
                       {{"Authorization", "Bearer " + shop_key_}, {"Idempotency-Key", told.number}},
                       fmt::format(R"({{"units":{}}})", units));
    });
    if (!answer) return false;
    told.has_ended = answer->status == 409 && answer->problem() == "order-ended";
    EXPECT_TRUE(answer->status == 200 || told.has_ended)
        << text_of(buyer, told) << " has units taken back: " << answer->status << answer->body;
    if (answer->status == 200) told.taken_back = units;
    return true;
  }

  bool cancel(const std::string& buyer, Told& told) {
    const auto answer = until_answered([&](std::uint16_t port) {
      return test::ask(port, "POST", "/v1/sales/tea/orders/" + told.id + "/cancel",
                       {{"Sluice-Buyer", buyer}});
    });
    if (!answer) return false;
    told.is_cancelled = answer->status == 200;
    told.has_ended = answer->status == 409 && answer->problem() == "order-ended";
    EXPECT_TRUE(told.is_cancelled || told.has_ended)
        << text_of(buyer, told) << " cancels: " << answer->status << answer->body;
    EXPECT_TRUE(!told.is_cancelled || answer->text("state") == "cancelled") << answer->body;
    return true;
  }

  const std::vector<std::uint16_t>& ports_;
  const std::string shop_key_;
  const std::atomic<bool>& stopped_;
  std::size_t next_ = 0;
};

class ServiceStorm : public testing::Test {
 protected:
  ~ServiceStorm() override {
    for (std::size_t i = 0; HasFailure() && i < shop_.ports().size(); ++i)
      std::cout << "seller " << i << " said last:\n" << shop_.output_of(i) << '\n';
  }

  /// Everybody buys while the main thread kills.
  void rage() {
    std::atomic<int> next{0};
    std::atomic<bool> stopped{false};
    std::atomic<int> working{threads};
    const auto begins = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> crowd;
      for (int i = 0; i < threads; ++i)
        crowd.emplace_back([&] {
          Buyers buyers{shop_.ports(), shop_.shop_key(), stopped};
          for (int index = next++; index < plan_.buyers && !stopped; index = next++) {
            std::this_thread::sleep_until(begins + plan_.lasts * index / plan_.buyers);
            const auto name = fmt::format("b{}", index);
            auto told = buyers.visit(index, name);
            const std::lock_guard lock{mutex_};
            if (told) told_.emplace(name, std::move(*told));
          }
          --working;
        });
      const auto patience = begins + 2 * plan_.lasts + 120s;
      kill_while([&] { return working > 0 && std::chrono::steady_clock::now() < patience; });
      stopped = true;
    }
    EXPECT_EQ(told_.size(), static_cast<std::size_t>(plan_.buyers)) << "some got no last answer";
  }

  /// Each kind once, then at random. Who was killed gets some time: a shop that is always down
  /// sells nothing, and proves nothing.
  void kill_while(const std::function<bool()>& goes_on) {
    using enum test::StormShop::Victim;
    constexpr test::StormShop::Victim victims[] = {seller, redis, postgresql, all};
    constexpr std::string_view names[] = {"a seller", "redis", "postgresql", "all at once"};
    const auto end = std::chrono::steady_clock::now() + plan_.lasts;
    auto kill_at = std::chrono::steady_clock::now() + 500ms;
    std::size_t kills = 0;
    while (goes_on() || kills < std::size(victims)) {
      std::this_thread::sleep_for(10ms);
      shop_.look_after();
      const auto now = std::chrono::steady_clock::now();
      if (now < kill_at || (now > end && kills >= std::size(victims))) continue;
      const auto lot = kills < std::size(victims) ? kills : random_() % std::size(victims);
      ++kills;
      shop_.kill(victims[lot], random_);
      std::cout << "killed " << names[lot] << std::endl;
      if (kills % 8 == 2) shop_.intrude();
      kill_at =
          std::chrono::steady_clock::now() + (lot == 0 ? 300ms : 1200ms) + 1ms * (random_() % 600);
    }
    EXPECT_GE(kills, std::size(victims));
  }

  /// Until nothing is on its way: no order in the stream, none that may still expire, no payment
  /// that waits.
  void settle(Sale& sale, OrderStore& orders) {
    const auto is_settled = [&] {
      shop_.look_after();
      if (sale.status().get().waiting > 0) return false;
      const auto totals = orders.payments().totals("tea");
      if (totals.waiting > 0 || totals.asking > 0) return false;
      if (plan_.is_long && totals.refunds > 0) return false;  // a dead process keeps one for 60 s
      return std::ranges::none_of(rows_of(orders), [](const auto& row) {
        return row.second.state == OrderState::awaiting;
      });
    };
    bool settled = test::comes_true(is_settled);  // half a minute; a busy machine may take longer
    for (int more = 0; !settled && more < 4; ++more) settled = test::comes_true(is_settled);
    EXPECT_TRUE(settled) << "something is still on its way";
  }

  static std::map<std::string, SaleOrder> rows_of(OrderStore& orders) {
    std::map<std::string, SaleOrder> rows;
    std::int64_t last = 0;
    for (auto page = orders.page("tea", 0, 1000); !page.empty();
         page = orders.page("tea", last, 1000)) {
      last = page.back().id;
      for (auto& order : page)
        EXPECT_TRUE(rows.emplace(order.buyer.value, order).second)
            << order.buyer.value << " has two orders";
    }
    return rows;
  }

  /// Whether an order may stand as it does, after what its buyer was told.
  static bool fits(const Told& told, OrderState state) {
    using enum OrderState;
    const bool is_all_back = told.taken_back == told.units;
    if (told.is_paid && is_all_back) return state == refunding || state == refunded;
    if (told.is_paid) return state == paid || state == refunding || state == refunded;
    if (told.is_cancelled) return state == cancelled;
    return state == expired;
  }

  /// What the provider was asked to give back, of each order once for each key.
  std::map<std::string, std::int64_t> given_back() const {
    std::map<std::string, std::int64_t> back;
    std::map<std::string, std::string> asked;
    for (const auto& got : shop_.provider().got()) {
      const auto [known, is_new] = asked.emplace(got.key, got.body);
      EXPECT_EQ(known->second, got.body) << got.key << " asks for something else";
      if (is_new) back[got.text("order")] += *got.json().find("amount")->as_integer();
    }
    return back;
  }

  /// `asked`: what the provider was asked to give back.
  void compare_money(OrderStore& orders, const Told& told, const SaleOrder& order,
                     std::int64_t asked) const {
    std::int64_t given_back = 0;
    for (const auto& refund : orders.payments().refunds_of("tea", order.id))
      given_back += refund.amount;
    EXPECT_TRUE(plan_.is_long ? asked == given_back : asked <= given_back)
        << text_of(order.buyer.value, told) << ": " << asked << " of " << given_back;
    const auto row = orders.payments().find("tea", order.id).value();
    const bool is_paid = order.state == OrderState::paid;
    const auto before = told.wish == Wish::pays_for_less ? told.taken_back : 0;
    const auto paid = told.is_paid ? price * (told.units - before) : 0;
    EXPECT_EQ(paid - given_back, is_paid ? price * (order.units - row.returned) : 0)
        << text_of(order.buyer.value, told) << "; it stands as " << to_string(order.state);
    EXPECT_TRUE(!is_paid || row.returned == told.taken_back) << text_of(order.buyer.value, told);
  }

  void compare(OrderStore& orders) {
    const auto rows = rows_of(orders);
    const auto back = given_back();
    std::map<OrderState, int> states;
    std::set<std::string> numbers;
    for (const auto& [buyer, told] : told_) {
      const auto row = rows.find(buyer);
      if (told.id.empty()) {
        EXPECT_EQ(row, rows.end()) << text_of(buyer, told) << ", and has an order";
        continue;
      }
      EXPECT_TRUE(numbers.insert(told.number).second) << text_of(buyer, told) << ", not alone";
      ASSERT_NE(row, rows.end()) << text_of(buyer, told) << ", which is nowhere";
      const auto& order = row->second;
      EXPECT_EQ(told.id, fmt::to_string(order.id)) << text_of(buyer, told);
      EXPECT_EQ(told.number, order.number) << text_of(buyer, told);
      EXPECT_TRUE(fits(told, order.state))
          << text_of(buyer, told) << "; it stands as " << to_string(order.state);
      const auto refunds = back.find(told.number);
      compare_money(orders, told, order, refunds == back.end() ? 0 : refunds->second);
      ++states[order.state];
    }
    for (const auto& [buyer, order] : rows)
      EXPECT_TRUE(told_.contains(buyer)) << buyer << " has " << order.number << " untold";
    for (const auto& [state, count] : states) std::cout << count << ' ' << to_string(state) << '\n';
    EXPECT_GT(states[OrderState::cancelled], 0);
    EXPECT_GT(states[OrderState::expired], 0);
    EXPECT_GT(states[OrderState::paid], 0);
    EXPECT_GT(back.size(), 0U);
    std::cout << shop_.refused() << " intruders refused, " << back.size() << " orders refunded\n";
  }

  static constexpr int threads = 24;
  const Plan plan_ = plan_of_this_run();
  std::mt19937 random_ = random_source();
  test::StormShop shop_{3, plan_.stock};
  std::mutex mutex_;
  std::map<std::string, Told> told_;  // guarded by mutex_
};

TEST_F(ServiceStorm, V54_WhatBuyersWereToldStandsAfterEveryProcessWasKilled) {
  rage();
  const auto store = open(shop_.store_url());
  const auto orders = open_order_store(shop_.orders_url());
  std::optional<Sale> sale;
  ASSERT_TRUE(test::comes_true([&] {
    shop_.look_after();
    if (!sale) sale = Sale::load(*store, "tea").get();
    return sale.has_value();
  }));
  // It refuses while orders await their payment; many of them take long.
  bool is_archived = false;
  for (int round = 0; !is_archived && round < 10; ++round)
    is_archived = test::comes_true([&] {
      shop_.look_after();
      return shop_.archive() == 0;
    });
  ASSERT_TRUE(is_archived) << shop_.said_by_archive();
  settle(*sale, *orders);
  shop_.end();
  EXPECT_EQ(orders->payments().totals("tea").flagged, 0) << "right payments alone were told";
  EXPECT_GT(shop_.refused(), 0) << "no process with another store was refused";
  const auto found = audit(*store, *sale, *orders);
  for (const auto& check : found.checks) EXPECT_TRUE(check.ok) << check.name << ' ' << check.detail;
  EXPECT_EQ(found.dead, 0);
  EXPECT_EQ(found.on_the_way, 0);
  compare(*orders);
}

}  // namespace
}  // namespace sluice::server
