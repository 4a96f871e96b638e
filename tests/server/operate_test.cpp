/// What operators see and do, over real HTTP.
#include <atomic>

#include "server/operate_fixture.hpp"
#include "support/faulty_store.hpp"

namespace sluice::server {
namespace {

/// One event of a stream.
JsonValue next_state(http::RawClient& client) {
  const auto text = client.until("\n\n");
  const auto data = text.find("data: ");
  if (data == text.npos) return {};
  const auto end = text.find('\n', data);
  return JsonValue::parse(std::string_view{text}.substr(data + 6, end - data - 6),
                          {.bytes = 1 << 20})
      .value_or(JsonValue{});
}

class Operate : public OperateTest {
 protected:
  http::RawClient follow(int receive_buffer = 0) const {
    http::RawClient client{service_->port(), nullptr, receive_buffer};
    client.send(
        fmt::format("GET /v1/operate/events HTTP/1.1\r\nHost: shop\r\nAuthorization: "
                    "Bearer {}\r\n\r\n",
                    ann_.key));
    return client;
  }
};

TEST_F(Operate, TellsASessionWhoHeIs) {
  begin({tea(10)}, with_keys());
  const auto session = get("/v1/operate/session");
  EXPECT_EQ(session.status, 200);
  EXPECT_EQ(session.text("operator"), "ann");
  EXPECT_FALSE(*session.json().find("open")->as_bool());
  EXPECT_FALSE(session.text("version").empty());
  EXPECT_EQ(session.text("now").size(), std::string_view{"2026-01-02T03:04:05.678Z"}.size());
}

TEST_F(Operate, NoCacheKeepsWhatAnOperatorSees) {
  begin({tea(10)}, with_keys());
  for (const auto* path : {"/v1/operate/session", "/v1/operate/state", "/v1/operate/journal",
                           "/v1/operate/sales/tea/orders", "/v1/operate/locks"})
    EXPECT_TRUE(get(path).has("Cache-Control: no-store")) << path;
}

TEST_F(Operate, ASnapshotHasWhatStoreAndDatabaseHave) {
  begin({paid_tea(10)}, with_keys());
  for (const auto* buyer : {"ann", "bob", "cid"}) EXPECT_EQ(buy(buyer, "1").status, 201);
  EXPECT_EQ(buy("ann", "1").status, 200);
  EXPECT_EQ(buy("ann", "2").status, 409);
  const auto state = state_where([](const JsonValue& sale) {
    return integer(sale, {"by_state", "awaiting"}) == 3 && integer(sale, {"waiting"}) == 0;
  });
  const auto& sale = state.find("sales")->as_array()->front();
  EXPECT_EQ(integer(sale, {"stock"}), 10);
  EXPECT_EQ(integer(sale, {"sold"}), 3);
  EXPECT_EQ(integer(sale, {"left"}), 7);
  EXPECT_EQ(integer(sale, {"orders"}), 3);
  EXPECT_EQ(integer(sale, {"price"}), 500);
  EXPECT_EQ(integer(sale, {"answers", "admitted"}), 3);
  EXPECT_EQ(integer(sale, {"answers", "repeated"}), 1);
  EXPECT_EQ(integer(sale, {"answers", "already_bought"}), 1);
  EXPECT_EQ(member(sale, {"answers", "sold_out"}), nullptr);
  EXPECT_NE(member(sale, {"due", "next"})->as_text(), nullptr);
  EXPECT_EQ(integer(sale, {"due", "within_minute"}), 0);  // they have half an hour
  EXPECT_EQ(integer(sale, {"payments", "flagged"}), 0);
  EXPECT_EQ(integer(sale, {"worker", "inserted"}), 3);
  EXPECT_EQ(integer(sale, {"lag", "entries"}), 0);
  EXPECT_EQ(member(sale, {"workers"})->as_array()->size(), 1u);
  EXPECT_TRUE(member(sale, {"room"})->is_null());
  EXPECT_FALSE(*state.find("truncated")->as_bool());
  EXPECT_GE(integer(state, {"process", "connections"}), 0);
}

TEST_F(Operate, AStreamGoesOnFromASecondConnection) {
  begin({tea(10)}, with_keys());
  {
    auto client = follow();
    EXPECT_NE(client.until("\r\n\r\n").find("text/event-stream"), std::string::npos);
    EXPECT_EQ(integer(next_state(client).find("sales")->as_array()->front(), {"sold"}), 0);
  }
  EXPECT_EQ(buy("ann", "1").status, 201);
  auto client = follow();
  client.until("\r\n\r\n");
  EXPECT_TRUE(test::comes_true([&] {
    return integer(next_state(client).find("sales")->as_array()->front(), {"sold"}) == 1;
  }));
}

/// Many who look are one to the store, and nobody is none.
TEST_F(Operate, WhileNobodyLooksNothingIsAsked) {
  test::FaultyStore counted{*store_};
  const std::vector sales{tea(10)};
  service_ = std::make_unique<Service>(counted, with_keys(), sales);
  const auto asked = [&] { return counted.executed("sale/flow"); };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("GET", "/v1/sales").status, 200);
  EXPECT_EQ(asked(), 0u);
  {
    std::vector<http::RawClient> pages;
    for (int i = 0; i < 10; ++i) pages.push_back(follow());
    const auto before = asked();
    for (int round = 0; round < 5; ++round)
      for (auto& page : pages) EXPECT_FALSE(next_state(page).is_null());
    EXPECT_GT(asked(), before);
    EXPECT_LE(asked(), before + 20) << "not once for each of 50 snapshots";
  }
  EXPECT_TRUE(test::comes_true([&] {
    const auto before = asked();
    for (int i = 0; i < 20; ++i) ask("GET", "/v1/sales");  // some ticks go by
    return asked() == before;
  }));
  service_.reset();
}

/// As a thousand of them would be: their names alone are 768 bytes each in JSON.
std::vector<SaleDefinition> large_sales(int count) {
  std::vector<SaleDefinition> sales;
  for (int i = 0; i < count; ++i)
    sales.push_back({.name = fmt::format("{:03}{}", i, std::string(125, '\1')),
                     .stock = 9,
                     .number_type = fmt::format("T{}", i)});
  return sales;
}

TEST_F(Operate, MoreSalesThanAPageHasRoomForAreCut) {
  auto options = with_keys();
  options.snapshots.size = 8 << 10;
  begin(large_sales(12), options);
  const auto by_size = get("/v1/operate/state");
  EXPECT_LE(by_size.body.size(), options.snapshots.size + 100);
  EXPECT_TRUE(*by_size.json().find("truncated")->as_bool());
  EXPECT_EQ(integer(by_size.json(), {"sales_in_all"}), 12);
  EXPECT_GE(by_size.json().find("sales")->as_array()->size(), 3u);
  EXPECT_LT(by_size.json().find("sales")->as_array()->size(), 12u);

  options.snapshots = {.every = 20ms, .database_every = 20ms, .sales = 2};
  begin({}, options);
  const auto by_number = get("/v1/operate/state").json();
  EXPECT_EQ(by_number.find("sales")->as_array()->size(), 2u);
  EXPECT_TRUE(*by_number.find("truncated")->as_bool());

  options.snapshots.sales = 12;
  begin({}, options);
  const auto whole = get("/v1/operate/state").json();
  EXPECT_EQ(whole.find("sales")->as_array()->size(), 12u);
  EXPECT_FALSE(*whole.find("truncated")->as_bool());
}

/// The others ask again and again: a second stream would have to keep up with 50 snapshots a
/// second.
TEST_F(Operate, ASlowReaderIsDroppedAndTheOthersGoOn) {
  begin(large_sales(12), with_keys());
  auto slow = follow(4096);
  EXPECT_TRUE(test::comes_true([&] {
    EXPECT_EQ(get("/v1/operate/state").status, 200);
    return test::ask(service_->health_port(), "GET", "/metrics")
               .body.find("sluice_http_refused_total{cause=\"slow_event_reader\"} 1") !=
           std::string::npos;
  }));
  auto quick = follow();
  EXPECT_FALSE(next_state(quick).is_null());
}

TEST_F(Operate, NoMorePagesLookThanMay) {
  auto options = with_keys();
  options.snapshots.pages = 2;
  begin({tea(10)}, options);
  auto one = follow();
  auto two = follow();
  EXPECT_FALSE(next_state(one).is_null());
  EXPECT_FALSE(next_state(two).is_null());
  const auto refused = get("/v1/operate/events");
  EXPECT_EQ(refused.problem(), "busy");
  EXPECT_TRUE(refused.has("Retry-After"));
}

TEST_F(Operate, OneOperatorLeavesRoomForTheOthers) {
  auto options = with_keys();
  options.snapshots.pages_of_one = 2;
  begin({tea(10)}, options);
  auto one = follow();
  auto two = follow();
  EXPECT_FALSE(next_state(one).is_null());
  EXPECT_FALSE(next_state(two).is_null());
  EXPECT_EQ(get("/v1/operate/events").problem(), "busy");
  EXPECT_EQ(get("/v1/operate/state").problem(), "busy");
  EXPECT_EQ(as(bob_, "GET", "/v1/operate/state").status, 200);
}

/// Not "0 units of 0 are left", and not a million orders a second when it is there again.
TEST_F(Operate, WhatTheStoreDoesNotSayIsUnknownAndNotZero) {
  test::FaultyStore faulty{*store_};
  std::atomic is_away{false};
  faulty.plan = [&](std::string_view call) {
    return is_away && call == "sale/flow" ? test::Fault::refused : test::Fault::none;
  };
  const std::vector sales{tea(10)};
  service_ = std::make_unique<Service>(faulty, with_keys(), sales);
  for (const auto* buyer : {"ann", "bob", "cid"}) EXPECT_EQ(buy(buyer, "1").status, 201);
  auto page = follow();
  page.until("\r\n\r\n");
  const auto sale = [&] { return next_state(page).find("sales")->as_array()->front(); };
  EXPECT_TRUE(test::comes_true([&] {
    const auto shown = sale();
    return integer(shown, {"sold"}) == 3 && *member(shown, {"admitted_per_s"})->as_integer() == 0;
  }));
  is_away = true;
  JsonValue shown;
  EXPECT_TRUE(test::comes_true([&] {
    shown = sale();
    return !member(shown, {"trouble"})->as_text()->empty();
  }));
  EXPECT_EQ(*member(shown, {"state"})->as_text(), "unknown");
  for (const auto* figure : {"stock", "sold", "left", "orders", "waiting", "dead", "lag",
                             "admitted_per_s", "in_transfer"})
    EXPECT_TRUE(member(shown, {figure})->is_null()) << figure;
  is_away = false;
  while (member(shown, {"sold"})->is_null()) shown = sale();
  for (int i = 0; i < 3; ++i, shown = sale()) {
    EXPECT_EQ(integer(shown, {"sold"}), 3);
    EXPECT_EQ(integer(shown, {"admitted_per_s"}), 0) << "nobody has bought meanwhile";
  }
  service_.reset();
}

TEST_F(Operate, WhatBuyersWereAnsweredIsInTheMetrics) {
  SaleDefinition odd{.name = "o\"dd", .stock = 1, .number_type = "ODD"};
  begin({tea(1), odd}, with_keys());
  buy("ann", "1");
  buy("bob", "1");
  buy("ann", "1", {}, "o%22dd");
  const auto metrics = test::ask(service_->health_port(), "GET", "/metrics").body;
  const auto has = [&](std::string_view line) { return metrics.find(line) != metrics.npos; };
  EXPECT_TRUE(has("\nsluice_service_answers_total{sale=\"tea\",outcome=\"admitted\"} 1\n"))
      << metrics;
  EXPECT_TRUE(has("\nsluice_service_answers_total{sale=\"tea\",outcome=\"sold_out\"} 1\n"));
  EXPECT_TRUE(has("{sale=\"o\\\"dd\",outcome=\"admitted\"} 1\n"));
}

TEST_F(Operate, ADatabaseThatIsAwayIsSaidAndHidesNoStore) {
  begin({tea(10)}, with_keys());
  state_where([](const JsonValue& sale) { return integer(sale, {"by_state", "paid"}) == 0; });
  std::filesystem::remove(folder_ / "orders.db");
  std::filesystem::create_directory(folder_ / "orders.db");  // where it cannot be made anew
  const auto state =
      state_where([](const JsonValue& sale) { return sale.find("by_state")->is_null(); });
  EXPECT_FALSE(member(state, {"process", "trouble"})->as_text()->empty());
  EXPECT_EQ(integer(state.find("sales")->as_array()->front(), {"left"}), 10);
}

TEST_F(Operate, ARoomIsShownAndDriven) {
  auto options = with_keys();
  options.rooms = {{.name = "tea", .rate = 50, .inside = 1}};
  begin({tea(10)}, options);
  const auto come = [&](std::string_view buyer) {
    return ask("POST", "/v1/sales/tea/queue", {{"Sluice-Buyer", buyer}});
  };
  EXPECT_EQ(come("ann").text("state"), "inside");
  EXPECT_EQ(come("bob").text("state"), "waiting");
  const auto state = state_where([](const JsonValue& sale) {
    return integer(sale, {"room", "waiting"}) == 1;
  });
  const auto& sale = state.find("sales")->as_array()->front();
  EXPECT_EQ(integer(sale, {"room", "rate"}), 50);
  EXPECT_EQ(integer(sale, {"room", "inside"}), 1);
  EXPECT_EQ(integer(sale, {"room", "inside_now"}), 1);
  EXPECT_FALSE(*member(sale, {"room", "paused"})->as_bool());

  EXPECT_EQ(post("/v1/operate/rooms/tea/rate", R"({"rate":7})").status, 204);
  EXPECT_EQ(post("/v1/operate/rooms/tea/pause").status, 204);
  state_where([](const JsonValue& shown) {
    return integer(shown, {"room", "rate"}) == 7 && *member(shown, {"room", "paused"})->as_bool();
  });
  EXPECT_EQ(post("/v1/operate/rooms/tea/resume").status, 204);
  EXPECT_EQ(post("/v1/operate/rooms/tea/units", R"({"units":0})").status, 204);
  const auto stuck = state_where([](const JsonValue& shown) {
    return *member(shown, {"room", "state"})->as_text() == "sold_out";
  });
  EXPECT_EQ(integer(stuck.find("sales")->as_array()->front(), {"left"}), 10) << "and says why";
  EXPECT_EQ(post("/v1/operate/rooms/tea/units", R"({"units":3})").status, 204);
  state_where([](const JsonValue& shown) {
    return integer(shown, {"room", "units_left"}) == 3 &&
           !*member(shown, {"room", "paused"})->as_bool();
  });
  EXPECT_EQ(post("/v1/operate/rooms/tea/rate", R"({"rate":0})").status, 400);
  EXPECT_EQ(post("/v1/operate/rooms/tea/close", R"({"confirm":"te"})").problem(), "not-confirmed");
  EXPECT_EQ(come("cid").text("state"), "waiting");
  EXPECT_EQ(post("/v1/operate/rooms/tea/close", R"({"confirm":"tea"})").status, 204);
  EXPECT_EQ(come("dan").problem(), "queue-closed");
}

}  // namespace
}  // namespace sluice::server
