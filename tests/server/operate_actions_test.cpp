/// What operators change, and what the journal says of it.
#include <sqlite3/soci-sqlite3.h>

#include <set>

#include "http/text.hpp"
#include "sale/sql/soci.hpp"
#include "server/operate_fixture.hpp"
#include "server/paced_answer.hpp"
#include "sluice/exclusive_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "support/collected_log.hpp"
#include "support/faulty_store.hpp"

namespace sluice::server {
namespace {

const JsonValue::Array& list_of(const JsonValue& answer, const char* name) {
  return *answer.find(name)->as_array();
}
std::string text_in(const JsonValue& value, const char* name) {
  const auto* const found = value.find(name);
  return found && found->as_text() ? *found->as_text() : std::string{};
}

class OperateActions : public OperateTest {
 protected:
  static constexpr const char* of_tea = "/v1/operate/sales/tea";

  Answer at_tea(std::string_view path, std::string_view body) const {
    return post(fmt::format("{}{}", of_tea, path), body);
  }
  JsonValue look(std::string_view path) const {
    return get(fmt::format("{}{}", of_tea, path)).json();
  }
  /// The database as another program sees it.
  std::unique_ptr<OrderStore> database() const {
    return open_order_store("sqlite:" + (folder_ / "orders.db").string());
  }
  /// The database has so many units, whatever the store sells.
  void set_database_stock(std::int64_t units) const {
    const auto orders = database();
    const auto change = orders->begin_stock_change("tea", units);
    orders->end_stock_change("tea", change->seq, true);
  }
  /// The id of a dead letter: an order that the database has no units for.
  std::string bury(std::string_view buyer) {
    EXPECT_EQ(buy(buyer, "1").status, 201);
    JsonValue letters;
    EXPECT_TRUE(test::comes_true([&] {
      letters = look("/dead-letters");
      return !list_of(letters, "letters").empty();
    }));
    const auto& letter = list_of(letters, "letters").front();
    EXPECT_EQ(text_in(*letter.find("order"), "buyer"), buyer);
    EXPECT_NE(text_in(letter, "reason").find("units"), std::string::npos);
    EXPECT_FALSE(text_in(*letter.find("fields"), "order").empty());
    EXPECT_TRUE(letters.find("next")->is_null());
    return text_in(letter, "id");
  }
  std::int64_t left() { return integer(ask("GET", "/v1/sales/tea").json(), {"left"}); }
};

TEST_F(OperateActions, ADeadLetterIsRevivedOnceItsCauseIsGone) {
  begin({tea(10)}, with_keys());
  set_database_stock(0);
  const auto letter = bury("ann");
  const auto number =
      text_in(*list_of(look("/dead-letters"), "letters").front().find("order"), "number");
  const auto small = "tea" + number.substr(3);
  ASSERT_EQ(list_of(look("/orders?q=" + small), "orders").size(), 1U);
  const auto order = look("/orders/" + number);
  EXPECT_EQ(text_in(*order.find("dead_letter"), "id"), letter);
  EXPECT_NE(text_in(*order.find("dead_letter"), "reason").find("units"), std::string::npos);
  set_database_stock(10);
  const auto path = fmt::format("/dead-letters/{}/revive", letter);
  EXPECT_EQ(at_tea(path, {}).status, 204);
  EXPECT_EQ(at_tea(path, {}).problem(), "no-letter");
  const auto journal = get("/v1/operate/journal").json();
  EXPECT_EQ(text_in(list_of(journal, "entries").at(1), "order"), number);
  EXPECT_TRUE(test::comes_true([&] {
    return list_of(look("/orders?q=ann"), "orders").size() == 1 &&
           *list_of(look("/orders?q=ann"), "orders").front().find("recorded")->as_bool();
  }));
}

TEST_F(OperateActions, ADeadLetterIsSettledByWhoTypesTheNameOfItsSale) {
  begin({tea(10)}, with_keys());
  set_database_stock(0);
  const auto letter = bury("ann");
  EXPECT_EQ(left(), 9);
  const auto path = fmt::format("/dead-letters/{}/settle", letter);
  for (const auto* body : {"", "{}", R"({"confirm":"Tea"})", R"({"confirm":""})"})
    EXPECT_EQ(at_tea(path, body).problem(), "not-confirmed") << body;
  EXPECT_EQ(left(), 9);
  const auto settled = at_tea(path, R"({"confirm":"tea","reason":"no units"})");
  EXPECT_EQ(settled.status, 200);
  EXPECT_EQ(text_in(*settled.json().find("order"), "state"), "cancelled");
  EXPECT_EQ(left(), 10);
  EXPECT_EQ(at_tea(path, R"({"confirm":"tea"})").problem(), "no-letter");
  EXPECT_EQ(buy("ann", "1").problem(), "order-ended");
}

/// In its own words, to operators alone.
TEST_F(OperateActions, WhyTheDatabaseRefusesToSettleADeadLetterIsSaid) {
  begin({tea(10)}, with_keys());
  set_database_stock(0);
  const auto letter = bury("ann");
  soci::session accountant{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  accountant << "CREATE TRIGGER books BEFORE INSERT ON sale_orders BEGIN"
                " SELECT RAISE(ABORT, 'the books are closed'); END";
  const auto path = fmt::format("/dead-letters/{}/settle", letter);
  const auto refused = at_tea(path, R"({"confirm":"tea"})");
  EXPECT_EQ(refused.problem(), "database-failed");
  EXPECT_NE(refused.text("detail").find("the books are closed"), std::string::npos) << refused.body;
  accountant << "DROP TRIGGER books";
  EXPECT_EQ(at_tea(path, R"({"confirm":"tea"})").status, 200);
}

TEST_F(OperateActions, WhatIsNoIdIsNoLetter) {
  begin({tea(10)}, with_keys());
  for (const auto* id : {"1-1", "x", "-", "1", "99999999999999999999-1", "%2B", "1-1%0A"}) {
    const auto path = fmt::format("/dead-letters/{}/", id);
    EXPECT_EQ(at_tea(path + "revive", {}).problem(), "no-letter") << id;
    EXPECT_EQ(at_tea(path + "settle", R"({"confirm":"tea"})").problem(), "no-letter") << id;
  }
  EXPECT_EQ(get("/v1/operate/sales/tea/dead-letters?after=x").problem(), "bad-parameter");
  EXPECT_EQ(post("/v1/operate/sales/cake/dead-letters/1-1/revive").problem(), "no-sale");
}

TEST_F(OperateActions, APoisonedEntryIsShownAndSettledWithoutAnOrder) {
  begin({tea(10)}, with_keys());
  store_->run({"XADD", "{tea}:orders", "*", "junk", "\xff\n\"", "junk", "twice"}).get();
  JsonValue letters;
  ASSERT_TRUE(test::comes_true([&] {
    letters = look("/dead-letters");
    return !list_of(letters, "letters").empty();
  }));
  const auto& letter = list_of(letters, "letters").front();
  EXPECT_TRUE(letter.find("order")->is_null());
  EXPECT_FALSE(text_in(*letter.find("fields"), "junk").empty());
  const auto settled =
      at_tea(fmt::format("/dead-letters/{}/settle", text_in(letter, "id")), R"({"confirm":"tea"})");
  EXPECT_EQ(settled.status, 200);
  EXPECT_TRUE(settled.json().find("order")->is_null());
}

TEST_F(OperateActions, StockIsChangedDownToWhatIsSold) {
  begin({tea(10)}, with_keys());
  for (const auto* buyer : {"ann", "bob"}) EXPECT_EQ(buy(buyer, "1").status, 201);
  const auto below = at_tea("/stock", R"({"confirm":"tea","stock":1})");
  EXPECT_EQ(below.problem(), "more-sold");
  EXPECT_EQ(integer(below.json(), {"sold"}), 2);
  EXPECT_EQ(at_tea("/stock", R"({"confirm":"tea","stock":2})").status, 204);
  EXPECT_EQ(buy("cid", "1").problem(), "sold-out");
  EXPECT_EQ(at_tea("/stock", R"({"confirm":"tea","stock":3})").status, 204);
  EXPECT_EQ(buy("cid", "1").status, 201);
  for (const auto* body : {R"({"confirm":"tea"})", R"({"confirm":"tea","stock":-1})",
                           R"({"confirm":"tea","stock":1.5})", R"({"confirm":"tea","stock":"3"})",
                           R"({"confirm":"tea","stock":3,"sold":1})", R"([])", R"({"stock")",
                           R"({"confirm":1,"stock":3})"})
    EXPECT_EQ(at_tea("/stock", body).problem(), "bad-body") << body;
  EXPECT_EQ(at_tea("/stock", R"({"confirm":"tea","stock":1000000000000})").problem(),
            "bad-parameter")
      << "more than a day has numbers";
}

TEST_F(OperateActions, AClosedSaleSellsNothingMore) {
  begin({tea(10)}, with_keys());
  EXPECT_EQ(at_tea("/close", {}).problem(), "not-confirmed");
  EXPECT_EQ(buy("ann", "1").status, 201);
  EXPECT_EQ(at_tea("/close", R"({"confirm":"tea"})").status, 204);
  EXPECT_EQ(buy("bob", "1").problem(), "closed");
  EXPECT_EQ(at_tea("/close", R"({"confirm":"tea"})").status, 204) << "again";
}

TEST_F(OperateActions, AnAuditFindsWhatIsWrong) {
  begin({tea(10)}, with_keys());
  for (const auto* buyer : {"ann", "bob"}) EXPECT_EQ(buy(buyer, "1").status, 201);
  const auto sound = at_tea("/audit", {});
  EXPECT_EQ(sound.status, 200);
  EXPECT_TRUE(*sound.json().find("sound")->as_bool()) << sound.body;
  EXPECT_TRUE(list_of(sound.json(), "findings").empty()) << sound.body;
  EXPECT_GE(integer(sound.json(), {"took_ms"}), 0);
  store_->run({"HINCRBY", "{tea}:sale", "sold", "1"}).get();
  const auto wrong = at_tea("/audit", {});
  EXPECT_FALSE(*wrong.json().find("sound")->as_bool());
  EXPECT_FALSE(list_of(wrong.json(), "findings").empty()) << wrong.body;
}

TEST_F(OperateActions, OrdersAreFoundByNumberIdAndBuyer) {
  begin({paid_tea(500)}, with_keys());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy(fmt::format("b{}", i), "1").status, 201);
  ASSERT_TRUE(test::comes_true([&] { return list_of(look("/orders"), "orders").size() == 5; }));
  const auto all = look("/orders");
  const auto& first = list_of(all, "orders").front();
  const auto id = text_in(first, "id");
  for (const auto& word : {text_in(first, "number"), id, text_in(first, "buyer")}) {
    const auto found = look("/orders?q=" + word);
    ASSERT_EQ(list_of(found, "orders").size(), 1u) << word;
    EXPECT_EQ(text_in(list_of(found, "orders").front(), "id"), id) << word;
  }
  const auto shown = look("/orders?q=" + id);
  EXPECT_EQ(integer(list_of(shown, "orders").front(), {"due"}), 500);
  EXPECT_TRUE(list_of(look("/orders?q=nobody"), "orders").empty());

  std::size_t pages = 0;
  std::set<std::string> ids;
  std::string after;
  for (bool more = true; more; ++pages) {
    const auto page = look("/orders?most=2&after=" + after);
    for (const auto& order : list_of(page, "orders")) ids.insert(text_in(order, "id"));
    after = text_in(page, "next");
    more = !after.empty();
  }
  EXPECT_EQ(pages, 3u);
  EXPECT_EQ(ids.size(), 5u);
  for (const auto* query : {"most=0", "most=501", "most=x", "after=x", "most=-1"})
    EXPECT_EQ(get(fmt::format("{}/orders?{}", of_tea, query)).problem(), "bad-parameter") << query;
}

TEST_F(OperateActions, PaymentsThatDoNotFitAreListed) {
  begin({paid_tea(10)}, with_keys());
  const auto number = buy("ann", "1").text("number");
  const auto orders = database();
  ASSERT_TRUE(
      test::comes_true([&] { return orders->stock("tea") && orders->find_number("tea", number); }));
  for (const auto* event : {"e:1", "e:2", "e:3"}) {
    const Payment payment{"acme", event, "tea", number, 7, "CNY"};
    orders->payments().keep(payment);
    orders->payments().apply(payment);
  }
  const auto first = look("/payments?most=2");
  ASSERT_EQ(list_of(first, "payments").size(), 2u);
  EXPECT_EQ(integer(list_of(first, "payments").front(), {"amount"}), 7);
  EXPECT_EQ(text_in(list_of(first, "payments").front(), "order"), number);
  const auto second = look("/payments?most=2&after=" + http::escape(text_in(first, "next")));
  ASSERT_EQ(list_of(second, "payments").size(), 1u);
  EXPECT_EQ(text_in(list_of(second, "payments").front(), "event"), "e:3");
  EXPECT_TRUE(list_of(look("/payments?state=waiting"), "payments").empty());
  for (const auto* query : {"state=x", "after=x", "state=flagged'"})
    EXPECT_EQ(get(fmt::format("{}/payments?{}", of_tea, query)).status, 400) << query;
  EXPECT_TRUE(list_of(look("/payments?after=%27%20OR%201:1"), "payments").empty());
}

TEST_F(OperateActions, DeadMessagesAreListedAndReplayed) {
  begin({paid_tea(10)}, with_keys());
  EXPECT_EQ(buy("ann", "1").status, 201);
  const auto orders = database();
  ASSERT_TRUE(
      test::comes_true([&] { return orders->stock("tea") && !orders->page("tea", 0, 1).empty(); }));
  const auto id = orders->page("tea", 0, 1).front().id;
  orders->end_order("tea", id, OrderState::cancelled, "");
  for (const auto& message : orders->payments().take_messages("tea", 10, 60s))
    EXPECT_TRUE(orders->payments().message_failed("tea", message, {}));
  const auto dead = look("/messages");
  ASSERT_EQ(list_of(dead, "messages").size(), 1u);
  EXPECT_EQ(text_in(list_of(dead, "messages").front(), "order"), fmt::to_string(id));
  EXPECT_EQ(text_in(list_of(dead, "messages").front(), "state"), "dead");
  const auto behind = look(fmt::format("/messages?after={}:1", id));
  EXPECT_TRUE(list_of(behind, "messages").empty());
  EXPECT_EQ(integer(at_tea("/messages/replay", {}).json(), {"replayed"}), 1);
  EXPECT_TRUE(list_of(look("/messages"), "messages").empty());
  EXPECT_EQ(list_of(look("/messages?state=due"), "messages").size(), 1u);
  for (const auto* query : {"state=x", "after=x", "after=1", "after=1:x"})
    EXPECT_EQ(get(fmt::format("{}/messages?{}", of_tea, query)).problem(), "bad-parameter")
        << query;
}

TEST_F(OperateActions, LocksAndNumbersOfTheStoreAreListed) {
  begin({tea(10)}, with_keys());
  Mutex mutex{*store_, "till"};
  const auto held = mutex.try_acquire().get();
  ASSERT_TRUE(held);
  const auto locks = get("/v1/operate/locks").json();
  ASSERT_EQ(list_of(locks, "locks").size(), 1u);
  const auto& lock = list_of(locks, "locks").front();
  EXPECT_EQ(text_in(lock, "name"), "till");
  ASSERT_EQ(list_of(lock, "holders").size(), 1u);
  EXPECT_GT(integer(list_of(lock, "holders").front(), {"left_ms"}), 0);
  EXPECT_EQ(integer(lock, {"waiting"}), 0);

  Series series{*store_, "INV", {.digits = 2}};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(series.next().get());
  store_->run({"HSET", "other:s", "definition", "x"}).get();  // somebody else's
  const auto numbers = get("/v1/operate/numbers").json();
  ASSERT_EQ(list_of(numbers, "series").size(), 1u);
  const auto& one = list_of(numbers, "series").front();
  EXPECT_EQ(text_in(one, "name"), "INV");
  EXPECT_EQ(text_in(one, "last"), "INV" + text_in(one, "period") + "03");
  EXPECT_EQ(integer(one, {"left"}), 96);
}

/// A store of a million keys is looked through for seconds, and a page asks each three.
TEST(PacedAnswerTest, IsMadeATenthOfTheTime) {
  VirtualClock clock;
  PacedAnswer paced{clock};
  int made = 0;
  const auto ask = [&] {
    return paced.get([&] {
      clock.advance(2s);
      return fmt::to_string(++made);
    });
  };
  EXPECT_EQ(ask(), "1");
  clock.advance(18s - 1ms);
  EXPECT_EQ(ask(), "1");
  clock.advance(1ms);
  EXPECT_EQ(ask(), "2");
  clock.advance(18s);
  EXPECT_THROW(paced.get([]() -> std::string { throw Error{Errc::connection, "away"}; }), Error);
  EXPECT_EQ(ask(), "3");
}

// --- the journal ---

TEST_F(OperateActions, TheJournalSaysWhoDidWhat) {
  test::CollectedLog log;
  begin({tea(10)}, with_keys());
  EXPECT_EQ(
      as(ann_, "POST", "/v1/operate/sales/tea/stock", R"({"confirm":"tea","stock":12})").status,
      204);
  EXPECT_EQ(as(bob_, "POST", "/v1/operate/sales/tea/close", R"({"confirm":"cake"})").status, 422);
  EXPECT_EQ(as(bob_, "POST", "/v1/operate/sales/tea/dead-letters/1-1/settle",
               "{\"confirm\":\"tea\",\"reason\":\"a\\nb\"}")
                .status,
            404);
  const auto journal = get("/v1/operate/journal").json();
  const auto& entries = list_of(journal, "entries");
  ASSERT_EQ(entries.size(), 3u);
  struct Row {
    const char* by;
    const char* action;
    const char* detail;
    const char* outcome;
  };
  const Row rows[] = {
      {"bob", "settle_dead_letter", "id=1-1 reason=a\nb", "There is no such dead letter"},
      {"bob", "close_sale", "", "What cannot be undone"},
      {"ann", "change_stock", "stock=12", "done"}};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(text_in(entries[i], "operator"), rows[i].by) << i;
    EXPECT_EQ(text_in(entries[i], "action"), rows[i].action) << i;
    EXPECT_EQ(text_in(entries[i], "target"), "tea") << i;
    EXPECT_EQ(text_in(entries[i], "detail"), rows[i].detail) << i;
    EXPECT_TRUE(text_in(entries[i], "outcome").starts_with(rows[i].outcome))
        << text_in(entries[i], "outcome");
    EXPECT_EQ(text_in(entries[i], "at").size(), 24u);
  }
  EXPECT_EQ(log.count("operator 'ann': change_stock \"tea\" \"stock=12\": \"done\""), 1u)
      << log.text();
  EXPECT_EQ(log.count("\nb"), 0u) << "no text of an operator makes a line of its own";

  const auto first = get("/v1/operate/journal?most=2").json();
  const auto rest = get("/v1/operate/journal?most=2&after=" + text_in(first, "next")).json();
  ASSERT_EQ(list_of(rest, "entries").size(), 1u);
  EXPECT_EQ(text_in(list_of(rest, "entries").front(), "operator"), "ann");
  EXPECT_TRUE(rest.find("next")->is_null());
  EXPECT_EQ(get("/v1/operate/journal?after=x").problem(), "bad-parameter");
}

TEST_F(OperateActions, WhatTheJournalCannotTakeIsNotDone) {
  test::FaultyStore faulty{*store_};
  faulty.plan = [](std::string_view call) {
    return call == "XADD" ? test::Fault::refused : test::Fault::none;
  };
  const std::vector sales{tea(10)};
  service_ = std::make_unique<Service>(faulty, with_keys(), sales);
  EXPECT_EQ(at_tea("/close", R"({"confirm":"tea"})").problem(), "store-failed");
  EXPECT_EQ(buy("ann", "1").status, 201) << "it is open";
  service_.reset();
}

/// A login needs no store; what the journal does not have of it the log has.
TEST_F(OperateActions, ALoginThatTheJournalCannotTakeIsInTheLog) {
  test::CollectedLog log;
  test::FaultyStore faulty{*store_};
  faulty.plan = [](std::string_view call) {
    return call == "XADD" ? test::Fault::refused : test::Fault::none;
  };
  const std::vector sales{tea(10)};
  service_ = std::make_unique<Service>(faulty, with_keys(), sales);
  EXPECT_EQ(ask("POST", "/console/login", {}, "key=" + ann_.key).status, 204);
  EXPECT_TRUE(test::comes_true([&] { return log.count("operator 'ann': log_in") == 1; }))
      << log.text();
  service_.reset();
}

/// An operator who waits for much comes in all the same, and each time it is written down.
TEST_F(OperateActions, EachLoginIsInTheJournalWhateverElseTheOperatorWaitsFor) {
  auto options = with_keys();
  begin({tea(10)}, options);
  constexpr std::size_t logins = 20;
  for (std::size_t i = 0; i < logins; ++i)
    EXPECT_EQ(ask("POST", "/console/login", {}, "key=" + ann_.key).status, 204);
  EXPECT_TRUE(test::comes_true([&] {
    return list_of(as(bob_, "GET", "/v1/operate/journal").json(), "entries").size() == logins;
  }));
}

TEST_F(OperateActions, TheReasonOfASettlementIsWholeInTheJournal) {
  begin({tea(10)}, with_keys());
  std::string reason;
  while (reason.size() + 3 <= 1000) reason += "\xe6\xb1\x89";
  const auto body = fmt::format(R"({{"confirm":"tea","reason":"{}"}})", reason);
  EXPECT_EQ(at_tea("/dead-letters/1-1/settle", body).problem(), "no-letter");
  const auto journal = get("/v1/operate/journal").json();
  EXPECT_EQ(text_in(list_of(journal, "entries").front(), "detail"), "id=1-1 reason=" + reason);
}

TEST_F(OperateActions, PlacesThatNoPageHasAreRefused) {
  begin({tea(10)}, with_keys());
  constexpr auto last = "18446744073709551615-18446744073709551615";
  for (const auto& path : {std::string{"/v1/operate/journal?after="},
                           std::string{"/v1/operate/sales/tea/dead-letters?after="}})
    for (const auto* place : {"0-0", last, "%FF", "%00"})
      EXPECT_EQ(get(path + place).problem(), "bad-parameter") << path << place;
  for (const auto* query : {"q=%FF", "q=a%00", "most=%FF", "x=%FF"})
    EXPECT_EQ(get(fmt::format("{}/orders?{}", of_tea, query)).problem(), "bad-parameter") << query;
}

TEST_F(OperateActions, ADeedThatNobodyEndedStaysBegun) {
  begin({tea(10)}, with_keys());
  Journal journal{*store_};
  journal.begin({.by = "ann", .action = "close_sale", .target = "tea", .outcome = "begun"});
  const auto entries = get("/v1/operate/journal").json();
  EXPECT_EQ(text_in(list_of(entries, "entries").front(), "outcome"), "begun");
}

TEST_F(OperateActions, TheJournalKeepsItsLatestEntries) {
  Journal journal{*store_};
  for (std::size_t i = 0; i < Journal::most + 50; ++i)
    journal.begin({.by = "ann", .action = fmt::to_string(i)});
  EXPECT_EQ(store_->run({"XLEN", Journal::key}).get().as_integer(),
            static_cast<std::int64_t>(Journal::most));
  EXPECT_EQ(journal.read({}, 1).front().action, fmt::to_string(Journal::most + 49));
}

/// The store is away from the database: what needs the one does without the other.
TEST_F(OperateActions, DeadLettersAreSeenWhileTheDatabaseIsAway) {
  begin({tea(10)}, with_keys());
  std::filesystem::remove(folder_ / "orders.db");
  std::filesystem::create_directory(folder_ / "orders.db");
  EXPECT_EQ(get("/v1/operate/sales/tea/dead-letters").status, 200);
  EXPECT_EQ(get("/v1/operate/locks").status, 200);
  const auto closed = at_tea("/close", R"({"confirm":"tea"})");
  EXPECT_EQ(closed.status, 503) << closed.body;
  for (const auto* says : {"close it again", "orders.db"})
    EXPECT_NE(closed.text("detail").find(says), std::string::npos) << closed.body;
  EXPECT_EQ(buy("ann", "1").problem(), "closed") << "the store sells nothing more at once";
}

}  // namespace
}  // namespace sluice::server
