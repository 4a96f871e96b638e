// Locks, numbers, ids and Bloom filters over HTTP, on one process.
#include <fstream>
#include <set>

#include "http/client.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/mutex.hpp"

namespace sluice::server {
namespace {

class Tools : public ShopTest {
 protected:
  void SetUp() override { begin({}, of_this_machine()); }

  Answer acquire(std::string_view name, std::string_view key, std::string_view body = {}) const {
    return ask("POST", fmt::format("/v1/locks/{}", name), {{"Idempotency-Key", key}}, body);
  }
  Answer release(std::string_view name, std::string_view owner) const {
    return ask("DELETE", fmt::format("/v1/locks/{}/{}", name, owner));
  }
  Answer renew(std::string_view name, std::string_view owner, std::string_view body) const {
    return ask("PUT", fmt::format("/v1/locks/{}/{}", name, owner), {}, body);
  }
  bool is_held(std::string_view name) const {
    const auto shown = ask("GET", fmt::format("/v1/locks/{}", name)).json();
    return *shown.find("held")->as_bool();
  }
  std::int64_t waiting(std::string_view name) const {
    const auto shown = ask("GET", fmt::format("/v1/locks/{}", name)).json();
    return *shown.find("waiting_here")->as_integer();
  }
  bool wait_here(std::string_view name, std::int64_t count) const {
    return test::comes_true([&] { return waiting(name) == count; });
  }
  /// Asks, and reads no answer.
  void begin_to_wait(http::RawClient& client, std::string_view name, std::string_view key,
                     std::string_view wait_ms = "30000") const {
    const auto body = fmt::format(R"({{"wait_ms":{}}})", wait_ms);
    client.send(
        fmt::format("POST /v1/locks/{} HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {}\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    name, key, body.size(), body));
  }
};

std::uint64_t token_of(const Answer& hold) { return std::stoull(hold.text("token")); }

TEST_F(Tools, ALockIsHeldByOneWishAtATime) {
  const auto ann = acquire("stock", "ann");
  ASSERT_EQ(ann.status, 201) << ann.body;
  EXPECT_EQ(*ann.json().find("left_ms")->as_integer(), 30'000);
  const auto bob = acquire("stock", "bob");
  EXPECT_EQ(bob.problem(), "held");
  EXPECT_TRUE(bob.has("Retry-After"));
  EXPECT_LE(*bob.json().find("left_ms")->as_integer(), 30'000);
  EXPECT_EQ(release("stock", ann.text("owner")).status, 204);
  EXPECT_EQ(release("stock", ann.text("owner")).status, 204) << "again";
  const auto next = acquire("stock", "bob");
  EXPECT_EQ(next.status, 201);
  EXPECT_GT(token_of(next), token_of(ann));
}

TEST_F(Tools, ARepeatGetsTheSameHold) {
  const auto first = acquire("stock", "ann");
  const auto again = acquire("stock", "ann");
  EXPECT_EQ(again.status, 201) << again.body;
  EXPECT_EQ(again.text("owner"), first.text("owner"));
  EXPECT_EQ(again.text("token"), first.text("token"));
  EXPECT_EQ(release("stock", first.text("owner")).status, 204);
  EXPECT_FALSE(is_held("stock")) << "one release ends it";
  EXPECT_NE(acquire("other", "ann").text("owner"), first.text("owner"));
}

TEST_F(Tools, ALeaseIsRenewedUntilItIsLost) {
  const auto hold = acquire("stock", "ann", R"({"lease_ms":50})");
  const auto renewed = renew("stock", hold.text("owner"), R"({"lease_ms":60000})");
  EXPECT_EQ(renewed.status, 200) << renewed.body;
  EXPECT_EQ(renewed.text("token"), hold.text("token"));
  renew("stock", hold.text("owner"), R"({"lease_ms":10})");
  EXPECT_TRUE(test::comes_true([&] { return !is_held("stock"); }));
  EXPECT_EQ(renew("stock", hold.text("owner"), "{}").problem(), "lost");
  const auto other = acquire("stock", "bob");
  EXPECT_EQ(release("stock", hold.text("owner")).status, 204);
  EXPECT_TRUE(is_held("stock")) << "a late release touches no other hold";
}

TEST_F(Tools, WhoWaitsGetsTheLockByTheRelease) {
  const auto ann = acquire("stock", "ann");
  http::RawClient bob{service_->port()};
  begin_to_wait(bob, "stock", "bob");
  ASSERT_TRUE(wait_here("stock", 1));
  EXPECT_FALSE(bob.has_input());
  release("stock", ann.text("owner"));
  EXPECT_NE(bob.answer().find("201 Created"), std::string::npos);
  EXPECT_EQ(waiting("stock"), 0);
}

TEST_F(Tools, WhoWaitsGetsTheLockWhenALeaseEndsWithoutAWord) {
  acquire("stock", "ann", R"({"lease_ms":100})");
  EXPECT_EQ(acquire("stock", "bob", R"({"wait_ms":30000})").status, 201);
}

TEST_F(Tools, AWaitEnds) {
  acquire("stock", "ann");
  http::RawClient first{service_->port()};
  begin_to_wait(first, "stock", "first", "30000");
  ASSERT_TRUE(wait_here("stock", 1));
  EXPECT_EQ(acquire("stock", "bob", R"({"wait_ms":20})").problem(), "held") << "behind another";
}

// The library and HTTP are two entrances of one lock.
TEST_F(Tools, AMutexOfTheLibraryAndALockOverHttpKeepEachOtherOut) {
  Mutex mutex{*store_, "stock"};
  auto held = mutex.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_EQ(acquire("stock", "ann").problem(), "held");
  http::RawClient ann{service_->port()};
  begin_to_wait(ann, "stock", "ann");
  ASSERT_TRUE(wait_here("stock", 1));
  const auto before = held->token().value;
  held->release().get();
  const auto answer = ann.answer();
  EXPECT_NE(answer.find("201 Created"), std::string::npos) << answer;
  EXPECT_FALSE(mutex.try_acquire().get());
  const auto hold = acquire("stock", "ann");
  EXPECT_GT(token_of(hold), before);
  std::jthread releases{[&] { release("stock", hold.text("owner")); }};
  EXPECT_TRUE(mutex.try_acquire(30s).get()) << "a release over HTTP hands the lock on";
}

TEST_F(Tools, AClientThatGoesWhileItWaitsGetsNothing) {
  const auto ann = acquire("stock", "ann");
  {
    http::RawClient bob{service_->port()};
    begin_to_wait(bob, "stock", "bob");
    ASSERT_TRUE(wait_here("stock", 1));
  }
  EXPECT_TRUE(wait_here("stock", 0));
  release("stock", ann.text("owner"));
  EXPECT_FALSE(is_held("stock"));
}

TEST_F(Tools, OneThatStandsBehindAnotherLeavesToo) {
  const auto ann = acquire("stock", "ann");
  http::RawClient bob{service_->port()};
  begin_to_wait(bob, "stock", "bob");
  ASSERT_TRUE(wait_here("stock", 1));
  {
    http::RawClient carl{service_->port()};
    begin_to_wait(carl, "stock", "carl");
    ASSERT_TRUE(wait_here("stock", 2));
  }
  EXPECT_TRUE(wait_here("stock", 1));
  http::RawClient dora{service_->port()};
  begin_to_wait(dora, "stock", "dora");
  ASSERT_TRUE(wait_here("stock", 2));
  release("stock", ann.text("owner"));
  EXPECT_NE(bob.answer().find("201 Created"), std::string::npos);
  EXPECT_FALSE(dora.has_input());
}

TEST_F(Tools, AServiceThatStopsEndsTheWaits) {
  acquire("stock", "ann");
  http::RawClient bob{service_->port()};
  begin_to_wait(bob, "stock", "bob");
  ASSERT_TRUE(wait_here("stock", 1));
  service_->stop(30s, 0s);
  EXPECT_NE(bob.answer().find(" 503 "), std::string::npos);
}

TEST_F(Tools, SoManyWaitForALockAndNoMore) {
  acquire("stock", "ann");
  std::vector<std::unique_ptr<http::RawClient>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<http::RawClient>(service_->port()));
    begin_to_wait(*clients.back(), "stock", fmt::to_string(i));
  }
  ASSERT_TRUE(wait_here("stock", 256));
  const auto refused = [&] {
    return std::ranges::count_if(clients, [](const auto& one) { return one->has_input(); });
  };
  EXPECT_TRUE(test::comes_true([&] { return refused() == 44; })) << refused();
  for (auto& client : clients) {
    if (!client->has_input()) continue;
    EXPECT_NE(client->answer().find(" 503 "), std::string::npos);
  }
  EXPECT_EQ(acquire("other", "bob", R"({"wait_ms":1000})").status, 201) << "another lock is free";
  clients.clear();
  EXPECT_TRUE(wait_here("stock", 0));
}

TEST_F(Tools, AllThatWaitHaveTheirTurn) {
  const auto ann = acquire("stock", "ann");
  std::vector<std::unique_ptr<http::RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<http::RawClient>(service_->port()));
    begin_to_wait(*clients.back(), "stock", fmt::to_string(i));
  }
  ASSERT_TRUE(wait_here("stock", 20));
  auto owner = ann.text("owner");
  std::set<std::string> owners;
  for (int i = 0; i < 20; ++i) {
    release("stock", owner);
    const auto is_answered = [](const auto& one) { return one->has_input(); };
    ASSERT_TRUE(test::comes_true([&] { return std::ranges::any_of(clients, is_answered); })) << i;
    const auto next = std::ranges::find_if(clients, is_answered);
    const auto answer = (*next)->answer();
    owner = Answer{201, {}, answer.substr(answer.find("\r\n\r\n") + 4)}.text("owner");
    owners.insert(owner);
    clients.erase(next);
  }
  EXPECT_EQ(owners.size(), 20);
}

TEST_F(Tools, WhatIsWrongIsRefusedAndSaysWhy) {
  const std::string deep(5000, '[');
  const std::string long_name(201, 'x');
  for (const auto body :
       {R"({"wait_ms":-1})", R"({"wait_ms":30001})", R"({"wait_ms":1.5})", R"({"lease_ms":9})",
        R"({"lease_ms":86400001})", R"({"lease_ms":"1"})", R"({"lease":1})", "[]", deep.c_str(),
        R"({"wait_ms":1,"wait_ms":2})", R"({"label":7})"})
    EXPECT_EQ(acquire("stock", "k", body).problem(), "bad-body") << body;
  for (const auto name : {"%7Btea%7D:orders", "sluice:x", "a%0Ab", "%7F", long_name.c_str()})
    EXPECT_EQ(acquire(name, "k").problem(), "bad-parameter") << name;
  EXPECT_EQ(ask("POST", "/v1/locks/stock").problem(), "no-idempotency-key");
  EXPECT_EQ(release("stock", "ann").problem(), "bad-parameter");
  EXPECT_EQ(renew("stock", "00000000-0000-8000-8000-00000000000g:1", "").problem(),
            "bad-parameter");
  EXPECT_FALSE(is_held("stock"));
  for (const auto body :
       {R"({"count":0})", R"({"count":1001})", R"({"count":99999999999999999999})",
        R"({"digits":16})", R"({"zone":"../../etc/passwd"})"})
    EXPECT_EQ(ask("POST", "/v1/series/MT/next", {{"Idempotency-Key", "k"}}, body).problem(),
              "bad-body")
        << body;
  EXPECT_EQ(ask("POST", "/v1/series/MT/next", {{"Idempotency-Key", "k"}}, R"({"zone":"No/Where"})")
                .problem(),
            "bad-parameter");
  EXPECT_EQ(ask("POST", "/v1/ids/order/next", {}, R"({"count":1001})").problem(), "bad-body");
  for (const auto body :
       {"{}", R"({"expected":0})", R"({"expected":1000000001})", R"({"expected":1000000000})",
        R"({"expected":10,"false_positives":1})", R"({"expected":10,"false_positives":0.0})",
        R"({"expected":10,"false_positives":1e-300})"})
    EXPECT_EQ(ask("PUT", "/v1/bloom/users", {}, body).problem(), "bad-body") << body;
  EXPECT_EQ(ask("POST", "/v1/bloom/users/add", {}, R"({"keys":[1]})").problem(), "bad-body");
  EXPECT_EQ(ask("POST", "/v1/bloom/users/add", {}, R"({"keys":[]})").problem(), "bad-body");
}

TEST_F(Tools, ANameOfSomethingElseIsRefusedAndStays) {
  store_->run({"SET", "text", "mine"}).get();
  store_->run({"HSET", "hash", "a", "1"}).get();
  for (const auto name : {"text", "hash"}) {
    EXPECT_EQ(acquire(name, "k").problem(), "wrong-kind") << name;
    EXPECT_EQ(acquire(name, "k", R"({"wait_ms":1000})").problem(), "wrong-kind") << name;
  }
  for (const auto name : {"text", "hash"})
    EXPECT_EQ(ask("POST", fmt::format("/v1/ids/{}/next", name)).problem(), "wrong-kind") << name;
  EXPECT_EQ(store_->run({"GET", "text"}).get().as_text(), "mine");
  EXPECT_EQ(store_->run({"HLEN", "hash"}).get().as_integer(), 1);
}

// They would go with the lock: the next ones would begin again.
TEST_F(Tools, IdsAreNotDrawnFromAHashThatIsALock) {
  const auto hold = acquire("stock", "ann");
  EXPECT_EQ(ask("POST", "/v1/ids/stock/next").problem(), "wrong-kind");
  EXPECT_EQ(release("stock", hold.text("owner")).status, 204);
  EXPECT_EQ(ask("POST", "/v1/ids/stock/next").status, 200);
  EXPECT_EQ(acquire("stock", "ann").problem(), "wrong-kind") << "nor a lock taken from ids";
  store_->run({"HSET", "odd", "last", "yesterday", "day", "1", "sequence", "1"}).get();
  EXPECT_EQ(ask("POST", "/v1/ids/odd/next").problem(), "wrong-kind");
}

// "a b" with "c", and "a" with "b c": between a name and a prefix there may be spaces.
TEST_F(Tools, NumbersAreOfTheSeriesThatWasAskedFor) {
  const auto draw = [&](std::string_view name, std::string_view prefix) {
    return ask("POST", fmt::format("/v1/series/{}/next", name), {{"Idempotency-Key", "k"}},
               fmt::format(R"({{"prefix":"{}"}})", prefix));
  };
  EXPECT_NE(draw("a%20b", "c").body.find("\"c2"), std::string::npos);
  const auto other = draw("a", "b c");
  EXPECT_NE(other.body.find("\"b c2"), std::string::npos) << other.body;
  EXPECT_NE(draw("a", "b c").body.find("0001\""), std::string::npos);
  EXPECT_EQ(*ask("GET", "/v1/series/a").json().find("given")->as_integer(), 1);
  EXPECT_EQ(*ask("GET", "/v1/series/a%20b").json().find("given")->as_integer(), 1);
}

// The same counters written otherwise would be numbers that nobody was given.
TEST_F(Tools, ARepeatWithAnotherDefinitionGetsNoNumbers) {
  const auto draw = [&](std::string_view body) {
    return ask("POST", "/v1/series/MT/next", {{"Idempotency-Key", "k"}}, body);
  };
  ASSERT_EQ(draw(R"({"prefix":"A"})").status, 200);
  for (const auto body : {R"({"prefix":"B"})", R"({"prefix":"A","digits":6})",
                          R"({"prefix":"A","zone":"Asia/Tokyo"})"})
    EXPECT_EQ(draw(body).problem(), "other-definition") << body;
  EXPECT_EQ(draw(R"({"prefix":"A"})").status, 200);
}

TEST_F(Tools, ARepeatGetsTheSameNumbers) {
  const auto draw = [&](std::string_view key, std::string_view body) {
    return ask("POST", "/v1/series/MT/next", {{"Idempotency-Key", key}}, body);
  };
  const auto first = draw("k1", R"({"count":3,"zone":"Asia/Shanghai"})");
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_NE(first.body.find("0001\""), std::string::npos) << first.body;
  EXPECT_NE(first.body.find("0003\""), std::string::npos);
  EXPECT_EQ(draw("k1", R"({"count":3,"zone":"Asia/Shanghai"})").body, first.body);
  const auto next = draw("k2", R"({"zone":"Asia/Shanghai"})");
  EXPECT_NE(next.body.find("0004\""), std::string::npos) << next.body;
  EXPECT_EQ(draw("k1", R"({"count":3,"zone":"Asia/Shanghai"})").body, first.body);
  EXPECT_EQ(draw("k1", R"({"count":2,"zone":"Asia/Shanghai"})").problem(), "bad-parameter");
  EXPECT_EQ(draw("k3", R"({"zone":"UTC"})").problem(), "other-definition");
  const auto shown = ask("GET", "/v1/series/MT");
  EXPECT_EQ(*shown.json().find("given")->as_integer(), 4) << shown.body;
  EXPECT_TRUE(shown.text("last").ends_with("0004"));
  EXPECT_EQ(ask("GET", "/v1/series/nobody").problem(), "no-series");
}

TEST_F(Tools, ADayThatIsFullSaysSo) {
  const auto draw = [&](std::string_view key) {
    return ask("POST", "/v1/series/MT/next", {{"Idempotency-Key", key}},
               R"({"count":7,"digits":1})");
  };
  EXPECT_EQ(draw("k1").json().find("numbers")->as_array()->size(), 7);
  EXPECT_EQ(draw("k2").json().find("numbers")->as_array()->size(), 2);
  EXPECT_EQ(draw("k2").json().find("numbers")->as_array()->size(), 2) << "the same two";
  EXPECT_EQ(draw("k3").problem(), "series-full");
}

TEST_F(Tools, IdsAreTextsThatRise) {
  const auto first = ask("POST", "/v1/ids/order/next", {}, R"({"count":1000})");
  ASSERT_EQ(first.status, 200) << first.body;
  std::int64_t last = 0;
  const auto whole = first.json();
  for (const auto& id : *whole.find("ids")->as_array()) {
    EXPECT_GT(std::stoll(*id.as_text()), last);
    last = std::stoll(*id.as_text());
  }
  const auto next = ask("POST", "/v1/ids/order/next").json();
  EXPECT_GT(std::stoll(*next.find("ids")->as_array()->front().as_text()), last);
}

TEST_F(Tools, H1_AFilterThatLostItsBitsIsNotTheDatabase) {
  ask("PUT", "/v1/bloom/users", {}, R"({"expected":100,"false_positives":0.01})");
  ask("POST", "/v1/bloom/users/add", {}, R"({"keys":["ann"]})");
  ASSERT_EQ(store_->run({"DEL", "users"}).get(), Value::integer(1));
  EXPECT_EQ(ask("POST", "/v1/bloom/users/contains", {}, R"({"keys":["ann"]})").problem(),
            "store-failed");
}

TEST_F(Tools, ABloomFilterIsMadeFilledAndAsked) {
  const auto make = [&](std::string_view body) { return ask("PUT", "/v1/bloom/users", {}, body); };
  EXPECT_EQ(ask("POST", "/v1/bloom/users/add", {}, R"({"keys":["ann"]})").problem(), "no-filter");
  EXPECT_EQ(ask("GET", "/v1/bloom/users").problem(), "no-filter");
  EXPECT_EQ(make(R"({"expected":1000,"false_positives":0.01})").status, 201);
  EXPECT_EQ(make(R"({"expected":1000,"false_positives":0.01})").status, 200);
  EXPECT_EQ(make(R"({"expected":1000,"false_positives":0.02})").problem(), "other-definition");
  const auto added = ask("POST", "/v1/bloom/users/add", {}, R"({"keys":["ann","bob","ann"]})");
  EXPECT_EQ(added.body, R"({"new":2})");
  const auto asked = ask("POST", "/v1/bloom/users/contains", {}, R"({"keys":["bob","carl"]})");
  EXPECT_EQ(asked.body, R"({"present":[true,false]})");
  EXPECT_EQ(*ask("GET", "/v1/bloom/users").json().find("keys")->as_integer(), 2);
}

class ToolsWithKeys : public ShopTest {
 protected:
  void write_keys(std::string_view lines) const {
    std::ofstream{folder_ / "keys"} << lines;
    std::filesystem::permissions(folder_ / "keys", std::filesystem::perms::owner_read);
  }
};

TEST_F(ToolsWithKeys, WithKeysOfTheShopOneOfThemIsNeeded) {
  const auto tools = make_shop_key("php", {Scope::tools});
  const auto till = make_shop_key("till", {Scope::orders});
  const auto other = make_shop_key("cron", {Scope::tools});
  auto how = options();
  write_keys(tools.line + "\n" + till.line + "\n" + other.line + "\n");
  how.shop_keys = ShopKeys::load((folder_ / "keys").string());
  begin({}, std::move(how));
  const auto acquire = [&](const std::string& key) {
    return ask("POST", "/v1/locks/stock",
               {{"Idempotency-Key", "k"}, {"Authorization", "Bearer " + key}});
  };
  EXPECT_EQ(ask("POST", "/v1/locks/stock", {{"Idempotency-Key", "k"}}).problem(), "unknown-key");
  EXPECT_EQ(acquire(till.key).problem(), "not-allowed");
  EXPECT_EQ(acquire(tools.key).status, 201);
  EXPECT_EQ(acquire(tools.key).status, 201) << "a repeat";
  EXPECT_EQ(acquire(other.key).problem(), "held") << "another caller's wish of the same name";
}

TEST_F(ToolsWithKeys, WithoutThemOthersThanThisMachineAreToldHowToMakeOne) {
  auto how = options();
  how.http.listen.host = "0.0.0.0";
  begin({}, std::move(how));
  const auto refused = ask("POST", "/v1/ids/order/next");
  EXPECT_EQ(refused.problem(), "no-shop-keys");
  EXPECT_NE(refused.text("detail").find("sluice serve key"), std::string::npos);
}

TEST_F(ToolsWithKeys, AProxyInFrontAndAPageOfAnotherSiteAreNotThisMachine) {
  auto how = options();
  how.http.trusted = {"127.0.0.1/32"};
  begin({}, std::move(how));
  EXPECT_EQ(ask("POST", "/v1/ids/order/next", {{"X-Forwarded-For", "203.0.113.9"}}).problem(),
            "no-shop-keys");
  EXPECT_EQ(ask("POST", "/v1/ids/order/next").problem(), "no-shop-keys")
      << "a proxy that does not say for whom it asks";
  begin({}, of_this_machine());
  EXPECT_EQ(ask("POST", "/v1/ids/order/next").status, 200);
  EXPECT_EQ(ask("POST", "/v1/ids/order/next", {{"Sec-Fetch-Site", "cross-site"}}).problem(),
            "not-same-origin");
  EXPECT_EQ(ask("POST", "/v1/ids/order/next", {{"Origin", "http://evil.example"}}).problem(),
            "not-same-origin")
      << "of a browser that tells no site";
  // A site whose name was turned to this machine: to its browser, page and service are one site.
  for (const auto* const host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example",
                                 "localhost.evil.example", "127.evil.example"}) {
    http::RawClient page{service_->port()};
    EXPECT_NE(page.ask(fmt::format("POST /v1/ids/order/next HTTP/1.1\r\nHost: {}\r\nOrigin: "
                                   "http://{}\r\nContent-Length: 0\r\n\r\n",
                                   host, host))
                  .find("other-host"),
              std::string::npos)
        << host;
  }
}

}  // namespace
}  // namespace sluice::server
