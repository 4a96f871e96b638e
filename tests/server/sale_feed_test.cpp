// Events of sales: what a listener is told, what one who comes back is told, and how many may
// listen.
#include "server/sale_feed.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "server/event_ring.hpp"
#include "shop_fixture.hpp"

namespace sluice::server {
namespace {

std::vector<std::string> ids_of(const std::vector<http::StreamEvent>& events) {
  std::vector<std::string> ids;
  for (const auto& event : events) ids.push_back(event.id);
  return ids;
}

TEST(EventRing, GivesWhatCameAfterAnId) {
  EventRing ring{"p", 3};
  EXPECT_EQ(ring.last_id(), "p-0");
  EXPECT_EQ(ids_of(ring.after("p-0").value()), std::vector<std::string>{});
  ring.add("state", "a");
  ring.add("state", "b");
  EXPECT_EQ(ids_of(ring.after("p-0").value()), (std::vector<std::string>{"p-1", "p-2"}));
  EXPECT_EQ(ids_of(ring.after("p-1").value()), (std::vector<std::string>{"p-2"}));
  EXPECT_EQ(ids_of(ring.after("p-2").value()), std::vector<std::string>{});
}

TEST(EventRing, KnowsNothingOfOtherIds) {
  EventRing ring{"p", 2};
  for (int i = 0; i < 5; ++i) ring.add("state", "x");
  EXPECT_TRUE(ring.after("p-3"));
  for (const auto* const id :
       {"p-2", "p-6", "q-4", "p-", "p-x", "p--1", "p-18446744073709551616", "", "-", "4", "p"})
    EXPECT_FALSE(ring.after(id)) << id;
}

/// A client of the stream of "tea".
class Listening {
 public:
  explicit Listening(std::uint16_t port, const std::string& last_id = {},
                     const char* from = nullptr)
      : client_(port, from) {
    client_.send("GET /v1/sales/tea/events HTTP/1.1\r\nHost: shop\r\n" +
                 (last_id.empty() ? "" : "Last-Event-ID: " + last_id + "\r\n") + "\r\n");
    head_ = client_.until("\r\n\r\n");
  }

  const std::string& head() const { return head_; }
  int status() const { return head_.size() < 12 ? 0 : std::stoi(head_.substr(9, 3)); }

  struct Event {
    std::string id, type, data;
    std::int64_t left() const {
      return *JsonValue::parse(data, {.bytes = 1000}).value().find("left")->as_integer();
    }
  };
  Event next() {
    for (;;) {
      const auto text = client_.until("\n\n");
      if (text.empty()) return {};
      if (text.starts_with(":") || text.starts_with("retry:")) continue;
      const auto field = [&](const std::string& name) {
        const auto at = text.find(name + ": ");
        if (at == text.npos) return std::string{};
        const auto from = at + name.size() + 2;
        return text.substr(from, text.find('\n', from) - from);
      };
      return {field("id"), field("event"), field("data")};
    }
  }
  bool is_silent() const { return !client_.has_input(); }

 private:
  http::RawClient client_;
  std::string head_;
};

class Feed : public ShopTest {
 protected:
  /// The test looks by itself, or each 5 ms.
  void begin_with(FeedOptions feed, std::vector<SaleDefinition> sales) {
    auto how = options();
    how.feed = feed;
    begin(std::move(sales), std::move(how));
  }
  std::string metrics() const { return test::ask(service_->health_port(), "GET", "/metrics").body; }
  bool there_are(int streams) const {
    return metrics().find(fmt::format("sluice_service_event_streams {}\n", streams)) !=
           std::string::npos;
  }
};

constexpr FeedOptions quick{.every = 5ms};

TEST_F(Feed, TellsHowTheSaleStandsAndWhatChanges) {
  begin_with(quick, {tea(2)});
  Listening listener{service_->port()};
  EXPECT_EQ(listener.status(), 200);
  EXPECT_NE(listener.head().find("Content-Type: text/event-stream"), std::string::npos);
  auto event = listener.next();
  EXPECT_EQ(event.type, "state");
  EXPECT_EQ(event.left(), 2);
  EXPECT_EQ(buy("ann", "k").status, 201);
  event = listener.next();
  EXPECT_EQ(event.type, "state");
  EXPECT_EQ(event.left(), 1);
  const auto order = buy("bob", "k");
  EXPECT_EQ(order.status, 201);
  EXPECT_EQ(listener.next().left(), 0);
  EXPECT_EQ(listener.next().type, "sold-out");
  EXPECT_EQ(ask("POST", fmt::format("/v1/sales/tea/orders/{}/cancel", order.text("id")),
                {{"Sluice-Buyer", "bob"}})
                .status,
            200);
  EXPECT_EQ(listener.next().left(), 1);
  EXPECT_EQ(listener.next().type, "reopened");
  service_->shop().find("tea")->sale().close().get();
  event = listener.next();
  EXPECT_EQ(event.type, "state");
  EXPECT_NE(event.data.find("\"closed\""), std::string::npos);
  EXPECT_EQ(listener.next().type, "closed");
}

TEST_F(Feed, SaysWhenItOpens) {
  auto later = tea(1);
  later.opens_at = WallTime{std::chrono::sys_days{std::chrono::year{2030} / 1 / 2}};
  begin_with(quick, {later});
  Listening listener{service_->port()};
  EXPECT_NE(listener.next().data.find("\"opens_at\":\"2030-01-02T00:00:00"), std::string::npos);
}

// A listener that is cut off again and again, and one that is not, are told the same.
TEST_F(Feed, V47_CutOffAndResumedNoneIsMissingOrDoubled) {
  constexpr int units = 30;
  begin_with({.every = 2ms, .kept = 1000}, {tea(units)});
  Listening whole{service_->port()};
  ASSERT_EQ(whole.next().left(), units);
  std::jthread buyers{[&] {
    for (int i = 0; i < units; ++i) EXPECT_EQ(buy(fmt::format("b{}", i), "k").status, 201);
  }};
  std::vector<std::string> told;
  std::string last;
  for (bool is_over = false; !is_over;) {
    Listening cut{service_->port(), last};
    for (int i = 0; i < 3 && !is_over; ++i) {
      const auto event = cut.next();
      ASSERT_FALSE(event.id.empty());
      last = event.id;
      told.push_back(event.id + event.type + event.data);
      is_over = event.type == "sold-out";
    }
  }
  std::vector<std::string> all;
  for (;;) {
    const auto event = whole.next();
    ASSERT_FALSE(event.id.empty());
    all.push_back(event.id + event.type + event.data);
    if (event.type == "sold-out") break;
  }
  // The first of those told is how the sale stood then.
  const auto snapshot = told.front().substr(0, told.front().find("state"));
  told.erase(told.begin());
  const auto from = std::ranges::find_if(
      all, [&](const auto& text) { return text.starts_with(snapshot + "state"); });
  const std::vector<std::string> rest{from == all.end() ? all.begin() : from + 1, all.end()};
  EXPECT_EQ(told, rest);
}

TEST_F(Feed, V47_AtAnotherProcessOneBeginsWithHowItStands) {
  begin_with(quick, {tea(5)});
  Listening listener{service_->port(), "0123456789abcdef-7"};
  const auto event = listener.next();
  EXPECT_EQ(event.type, "state");
  EXPECT_EQ(event.left(), 5);
  Listening garbage{service_->port(), "what is no id"};
  EXPECT_EQ(garbage.next().left(), 5);
}

TEST_F(Feed, V47_WhoWasAwayTooLongBeginsAnew) {
  begin_with({.every = 2ms, .kept = 2}, {tea(50)});
  std::string first;
  {
    Listening listener{service_->port()};
    first = listener.next().id;
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(buy(fmt::format("b{}", i), "k").status, 201);
      EXPECT_EQ(listener.next().left(), 49 - i);
    }
  }
  Listening late{service_->port(), first};
  const auto event = late.next();
  EXPECT_EQ(event.left(), 42);
  EXPECT_EQ(event.id.substr(event.id.find('-')), "-8");
}

// What happened while nobody listened is one change.
TEST_F(Feed, WhoComesBackHearsWhatChangedMeanwhile) {
  begin_with(quick, {tea(5)});
  std::string last;
  {
    Listening listener{service_->port()};
    last = listener.next().id;
  }
  EXPECT_TRUE(test::comes_true([&] { return there_are(0); }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buy(fmt::format("b{}", i), "k").status, 201);
  Listening again{service_->port(), last};
  EXPECT_EQ(again.next().left(), 2);
}

TEST_F(Feed, ASaleThatIsNotThereHasNoEvents) {
  begin_with(quick, {});
  EXPECT_EQ(Listening{service_->port()}.status(), 404);
}

TEST_F(Feed, OneClientHasSoManyStreamsAndAllTogetherToo) {
  begin_with({.every = 5ms, .streams = 5, .of_a_client = 3}, {tea(5)});
  std::vector<Listening> listeners;
  for (int i = 0; i < 3; ++i) {
    listeners.emplace_back(service_->port(), "", "127.0.0.2");
    EXPECT_EQ(listeners.back().next().left(), 5);
  }
  for (int i = 0; i < 1000; ++i) {
    const Listening refused{service_->port(), "", "127.0.0.2"};
    ASSERT_EQ(refused.status(), 429);
    ASSERT_NE(refused.head().find("Retry-After: "), std::string::npos);
  }
  for (int i = 0; i < 2; ++i) listeners.emplace_back(service_->port(), "", "127.0.0.3");
  const Listening full{service_->port(), "", "127.0.0.4"};
  EXPECT_EQ(full.status(), 503);
  EXPECT_NE(full.head().find("Retry-After: "), std::string::npos);
  listeners.clear();
  EXPECT_TRUE(test::comes_true([&] {
    return Listening{service_->port(), "", "127.0.0.2"}.status() == 200;
  }));
}

// The store is asked for all listeners together, and not while there is none.
TEST_F(Feed, TheStoreIsAskedOnceForAllAndForNobodyNever) {
  Shop shop{*store_, options().shop, std::vector{tea(5)}};
  RateLimits limits{system_clock(), {}, {}};
  SaleFeed feed{shop, limits, {.every = 1h}};
  http::Routes routes;
  feed.add_routes(routes);
  http::Server server{system_clock(), std::move(routes), {.loops = 1}};
  for (int i = 0; i < 10; ++i) feed.look();
  EXPECT_EQ(feed.looks(), 0U);
  {
    std::vector<Listening> listeners;
    for (int i = 0; i < 50; ++i) listeners.emplace_back(server.port());
    feed.look();
    for (auto& listener : listeners) EXPECT_EQ(listener.next().left(), 5);
    EXPECT_LE(feed.looks(), 2U) << "one of the feed's own, when the first came";
    const auto looks = feed.looks();
    shop.find("tea")->sale().buy(BuyerId{"ann"}, RequestId{"k"}).get();
    shop.find("tea")->sale().buy(BuyerId{"bob"}, RequestId{"k"}).get();
    feed.look();
    EXPECT_EQ(feed.looks(), looks + 1);
    for (auto& listener : listeners) EXPECT_EQ(listener.next().left(), 3) << "one event for both";
  }
  EXPECT_TRUE(test::comes_true([&] {
    feed.look();
    return feed.streams() == 0;
  }));
  const auto looks = feed.looks();
  feed.look();
  EXPECT_EQ(feed.looks(), looks);
}

}  // namespace
}  // namespace sluice::server
