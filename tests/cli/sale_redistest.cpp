// `sluice sale` from the first line of a file of sales to the archive.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "cli/program.hpp"
#include "sluice/order_store.hpp"

namespace sluice::test {
namespace {

class SaleProgram : public Program {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream{folder_ / name} << text;
  }
  Ran sale(std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "sale"});
    return run_on_redis(std::move(words));
  }
};

TEST_F(SaleProgram, AFileOfSalesIsCheckedBeforeAnyIsCreated) {
  const std::string good = R"({"name": "tea", "stock": 5, "type": "TE"})";
  const std::pair<std::string, const char*> rows[] = {
      {"", ":1:1: this is no JSON"},
      {"[" + good + ",\n  {\"name\": \"a\",, \"stock\": 1}]", ":2:16: this is no JSON"},
      {good, "sales stand in brackets"},
      {"[" + good + ", 5]", "sale 2: a sale stands in braces"},
      {"[" + good + ",\n  {\"name\": \"a\", \"stok\": 1}]",
       ": sale 2: a sale has no 'stok'; did you mean 'stock'?"},
      {"[" + good + ",\n  {\"name\": \"a\", \"stock\": \"1\"}]",
       ": sale 2: stock: an integer without quotes"},
      {"[" + good + ", {\"name\": \"a\", \"stock\": 1.5}]",
       ": sale 2: stock: an integer without quotes"},
      {"[" + good + ", {\"stock\": 1, \"type\": \"X\"}]", "this sale has no 'name'"},
      {"[" + good + "," + good + "]", "sale 'tea' stands twice"},
      {"[" + good + ", {\"name\": \"a\", \"stock\": 5, \"type\": \"TE\"}]",
       "type 'TE' is that of sale 'tea', too"},
      {"[" + good + "] x", "this is no JSON"},
      {"[" + good + ", {\"name\": \"a\", \"name\": \"b\"}]", "'name' stands twice"},
      {"[" + good + ", {\"name\": \"\\ud800\"}]", "this is no JSON"},
      {"[" + good + R"(, {"name": "a", "stock": 1, "type": "X", "opens": "tomorrow"}])",
       "opens: 'tomorrow' is no instant: write a date, a time and its zone"},
      {"[" + good + R"(, {"name": "a", "stock": 50000, "type": "X"}])",
       "50000 units can be 50000 orders"},
      {"[" + good + R"(, {"name": "a", "stock": 5, "type": "X", "zone": "Asia/Nowhere"}])",
       "Asia/Nowhere"},
      {"[" + good + R"(, {"name": "a", "stock": 5, "type": "X", "closes": "2025-01-01T00:00Z"}])",
       "nobody could buy"},
      {R"([{"name": "tea", "stock": 5, "type": "TE", "buckets": 27}])",
       "buckets: 27 buckets, it must be 1 to 26"},
  };
  for (const auto& [text, says] : rows) {
    write("sales.json", text);
    const Ran ran = sale({"create", "--file", "sales.json"});
    EXPECT_EQ(ran.status, 64) << text << '\n' << ran.output;
    EXPECT_TRUE(ran.says(says)) << text << '\n' << ran.output;
  }
  EXPECT_TRUE(sale({"list"}).json().at("sales").empty());
  EXPECT_EQ(sale({"create", "--file", "no such file"}).status, 64);

  write("sales.json", "[" + good + R"(, {"name": "wine", "stock": 7, "type": "WI", "limit": 0,
    "unit-limit": 3, "largest-order": 2, "zone": "Asia/Shanghai", "digits": 6,
    "opens": "2026-01-01T20:00:00+08:00", "closes": "2199-01-01T00:00Z"}])");
  for (int time = 0; time < 2; ++time) {
    const Ran ran = sale({"create", "--file", "sales.json"});
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json().at("sales").size(), 2U);
  }
  const auto listed = sale({"list"}).json().at("sales");
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed.at(0).at("name"), "tea");
  EXPECT_EQ(listed.at(1).at("state"), "open");
  EXPECT_EQ(listed.at(1).at("stock"), 7);
}

/// Each character that JSON may escape, by its escape, as a part of a name.
TEST_F(SaleProgram, SV16_AFileOfSalesIsReadAsJsonIs) {
  write("sales.json",
        R"([{"n\u0061me": "th\u00e9 \u8336 \ud83c\udf75 \/\"\\", "stock": 5, "type": "TE"}])");
  const Ran ran = sale({"create", "--file", "sales.json"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(sale({"list"}).json().at("sales").at(0).at("name"), "th\u00e9 \u8336 \U0001f375 /\"\\");
}

TEST_F(SaleProgram, AFileMayPutAStockIntoBuckets) {
  write("sales.json", R"([{"name": "tea", "stock": 9, "type": "TE", "buckets": 3}])");
  for (int time = 0; time < 2; ++time) {
    const Ran ran = sale({"create", "--file", "sales.json"});
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json().at("sales").at(0).at("buckets"), 3);
  }
  const Ran status = sale({"status", "tea"});
  EXPECT_EQ(status.json().at("buckets").size(), 3U) << status.output;
}

TEST_F(SaleProgram, ABucketIsNotTakenForTheWholeSale) {
  ASSERT_EQ(sale({"create", "tea", "--stock", "9", "--type", "TE", "--buckets", "3"}).status, 0);
  const Ran beside = sale({"create", "tea", "--stock", "9", "--type", "TX"});
  EXPECT_EQ(beside.status, 64) << "its stock would be sold twice";
  EXPECT_TRUE(beside.says("sale 'tea' is there, with 3 buckets")) << beside.output;
  for (const auto& words : {std::vector<std::string>{"close", "tea:1"},
                            {"buy", "tea:1", "--buyer", "ann"},
                            {"stock", "tea:1", "--to", "20"}}) {
    const Ran ran = sale(words);
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_TRUE(ran.says("'tea:1' is bucket 1 of 3: name the whole sale, 'tea'")) << ran.output;
  }
  EXPECT_EQ(sale({"buy", "tea", "--buyer", "ann"}).status, 0);
  EXPECT_EQ(sale({"close", "tea"}).status, 0);
  EXPECT_EQ(sale({"buy", "tea", "--buyer", "bob"}).status, 75);
  ASSERT_EQ(sale({"work", "tea", "--until-empty"}).status, 0);
  const Ran replayed = sale({"replay", "tea"});
  EXPECT_EQ(replayed.status, 0) << replayed.output;
  EXPECT_EQ(replayed.json().at("replayed"), 0) << "of all buckets";
}

TEST_F(SaleProgram, E11_OpensAndClosesAreInstantsAndNonsenseIsRefused) {
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"--opens", "8pm"}, "'8pm' is no instant: write a date, a time and its zone, like"},
      {{"--closes", "2026-11-11T12:00"}, "is no instant"},
      {{"--opens", "2199-01-01T00:00Z", "--closes", "2199-01-02T00:00Z"}, "opens after 2092-01-19"},
      {{"--opens", "2080-01-02T00:00Z", "--closes", "2080-01-01T00:00Z"}, "closes before it opens"},
      {{"--stock", "50000"}, "50000 units can be 50000 orders on one day, and 4 digit(s)"},
      {{"--file", "x.json"}, "not both"},
  };
  for (const auto& [words, says] : rows) {
    std::vector<std::string> line{"create", "tea", "--stock", "5", "--type", "TE"};
    line.insert(line.end(), words.begin(), words.end());
    const Ran ran = sale(line);
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_TRUE(ran.says(says)) << ran.output;
  }
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE", "--opens", "2080-01-01T00:00Z"})
                .status,
            0);
  EXPECT_EQ(sale({"status", "tea"}).json().at("state"), "not started");
  EXPECT_EQ(sale({"buy", "tea", "--buyer", "ann"}).status, 75);
}

TEST_F(SaleProgram, ADeadLetterIsGivenBackOnce) {
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE"}).status, 0);
  PlainClient{server_.port()}.command(
      {"XADD", "{tea}:dead", "1-1", "reason", "none", "entry", "1-0", "order", "rubbish"});
  EXPECT_EQ(sale({"dead", "tea"}).status, 1);
  EXPECT_EQ(sale({"dead", "tea", "--give-back", "x"}).status, 75);
  EXPECT_EQ(sale({"dead", "tea", "--give-back", "1-1", "--revive", "1-1"}).status, 64);
  const Ran ran = sale({"dead", "tea", "--give-back", "1-1", "--reason", "no order"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(sale({"dead", "tea", "--give-back", "1-1"}).status, 75);
  EXPECT_EQ(sale({"dead", "tea"}).status, 0);
}

TEST_F(SaleProgram, AnEmptyWordIsNotAnOptionLeftOut) {
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE"}).status, 0);
  const std::vector<std::string> rows[] = {
      {"buy", "tea", "--buyer", "ann", "--request", ""},
      {"buy", "tea", "--buyer", ""},
      {"cancel", "tea", "--buyer", "ann", "--request", ""},
      {"cancel", "tea", "--number", ""},
      {"archive", "tea", "--file", ""},
      {"dead", "tea", "--revive", ""},
      {"dead", "tea", "--give-back", ""},
  };
  for (const auto& words : rows) {
    const Ran ran = sale(words);
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_TRUE(ran.says("is empty")) << ran.output;
  }
  EXPECT_EQ(sale({"status", "tea"}).json().at("orders"), 0);
  EXPECT_EQ(sale({"status", "tea"}).json().at("state"), "open");
}

TEST_F(SaleProgram, BeforeTheFirstWorkerStockAndAuditWork) {
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE"}).status, 0);
  const Ran other = sale({"create", "more tea", "--stock", "5", "--type", "TE"});
  EXPECT_EQ(other.status, 64);
  EXPECT_TRUE(other.says("'TE' is that of sale 'tea'")) << other.output;
  sale({"buy", "tea", "--buyer", "ann"});
  EXPECT_EQ(sale({"stock", "tea", "--to", "6"}).status, 0);
  const Ran ran = sale({"audit", "tea"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json().at("on_the_way"), 1);
}

TEST_F(SaleProgram, NU05_ACommandMakesNoDatabaseBesideTheOneThatTheSaleHas) {
  const auto files = [&] {
    std::set<std::string> all;
    for (const auto& file : std::filesystem::recursive_directory_iterator{folder_.path()})
      if (!file.path().filename().string().starts_with("output")) all.insert(file.path());
    return all;
  };
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE"}).status, 0);
  EXPECT_EQ(sale({"audit", "tea"}).status, 78) << "it only reads";
  EXPECT_TRUE(files().empty());
  ASSERT_EQ(sale({"work", "tea", "--until-empty", "--orders", "sqlite:right.db"}).status, 0);
  const auto before = files();
  const std::vector<std::vector<std::string>> commands{
      {"audit", "tea"},
      {"replay", "tea"},
      {"stock", "tea", "--to", "6"},
      {"cancel", "tea", "--number", "TE1"},
      {"close", "tea", "--orders", "sqlite:orders.db"},
      {"refund", "tea", "--number", "TE1", "--key", "k"},
      {"archive", "tea"},
      {"work", "tea", "--until-empty"},
      {"recover", "tea"},
      {"recover", "tea", "--new-store"}};
  for (const auto& command : commands) {
    const Ran ran = sale(command);
    EXPECT_EQ(ran.status, 78) << command.front() << ran.output;
    for (const auto* const file : {"right.db", "orders.db"})
      EXPECT_TRUE(ran.says("sqlite:" + (folder_ / file).string())) << ran.output;
    EXPECT_EQ(files(), before) << command.front();
  }
  for (const auto* const command : {"list", "status", "audit", "dead"}) {
    std::vector<std::string> words{"--store", "embedded:" + (folder_ / "none").string(), "sale",
                                   command};
    if (words.back() != "list") words.emplace_back("tea");
    EXPECT_EQ(run(words).status, 64) << command;
    EXPECT_EQ(files(), before) << command;
  }
}

TEST_F(SaleProgram, E16_ASaleEndsAndLeavesNothingBehind) {
  ASSERT_EQ(sale({"create", "tea", "--stock", "5", "--type", "TE"}).status, 0);
  const auto bought =
      sale({"buy", "tea", "--buyer", "ann", "--units", "2", "--request", "r"}).json();
  const std::string number = bought.at("order").at("number");
  sale({"buy", "tea", "--buyer", "bob", "--units", "3"});

  Ran ran = sale({"stock", "tea", "--to", "4"});
  EXPECT_EQ(ran.status, 75) << ran.output;
  EXPECT_EQ(ran.json().at("sold"), 5);
  ran = sale({"stock", "tea", "--to", "8"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json().at("left"), 3);
  EXPECT_EQ(sale({"stock", "tea"}).status, 64);

  EXPECT_EQ(sale({"cancel", "tea"}).status, 64);
  EXPECT_EQ(sale({"cancel", "tea", "--buyer", "ann"}).status, 64);
  EXPECT_EQ(sale({"cancel", "tea", "--buyer", "ann", "--request", "other"}).status, 75);
  ran = sale({"cancel", "tea", "--buyer", "ann", "--request", "r", "--reason", "no more tea"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(ran.json().at("cancelled").get<bool>());
  ran = sale({"cancel", "tea", "--number", number});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_FALSE(ran.json().at("cancelled").get<bool>());
  EXPECT_EQ(ran.json().at("reason"), "no more tea");
  EXPECT_EQ(sale({"cancel", "tea", "--number", "TE0"}).status, 75);
  EXPECT_EQ(
      sale({"buy", "tea", "--buyer", "ann", "--units", "2", "--request", "r"}).json().at("outcome"),
      "cancelled");
  EXPECT_EQ(sale({"status", "tea"}).json().at("left"), 5);

  ran = sale({"archive", "tea", "--file", "tea.csv"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(ran.json().at("archived").get<bool>());
  EXPECT_FALSE(sale({"archive", "tea"}).json().at("archived").get<bool>());
  EXPECT_NE(read_file(folder_ / "tea.csv").find(number), std::string::npos);
  EXPECT_EQ(sale({"list"}).json().at("sales").at(0).at("state"), "archived");
  EXPECT_EQ(sale({"buy", "tea", "--buyer", "cid"}).json().at("outcome"), "closed");
  EXPECT_EQ(PlainClient{server_.port()}.command({"KEYS", "{tea}*"}).as_items().size(), 1U);
}

TEST_F(SaleProgram, UnitsOfAnOrderAreTakenBackOnceForEachKey) {
  ASSERT_EQ(
      sale({"create", "tea", "--stock", "9", "--type", "TE", "--price", "5", "--currency", "CNY"})
          .status,
      0);
  const std::string number =
      sale({"buy", "tea", "--buyer", "ann", "--units", "5"}).json().at("order").at("number");
  EXPECT_EQ(sale({"refund", "tea", "--number", number, "--key", "k"}).status, 69)
      << "the database does not know the sale yet";
  ASSERT_EQ(sale({"work", "tea", "--until-empty"}).status, 0);
  for (const char* const outcome : {"taken back", "repeated"}) {
    const auto ran = sale({"refund", "tea", "--number", number, "--units", "2", "--key", "k"});
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json().at("outcome"), outcome);
    EXPECT_EQ(ran.json().at("units"), 2);
    EXPECT_EQ(ran.json().at("refund"), 0) << "nothing was paid";
  }
  EXPECT_EQ(sale({"status", "tea"}).json().at("left"), 6);
  const auto refused = sale({"archive", "tea"});
  EXPECT_EQ(refused.status, 75) << refused.output;
  EXPECT_TRUE(refused.says("1 order(s) await their payment, the first of them until"));
  EXPECT_FALSE(refused.says("late payment"));
  EXPECT_EQ(sale({"refund", "tea", "--number", number, "--units", "4", "--key", "l"})
                .json()
                .at("outcome"),
            "too many");
  EXPECT_EQ(sale({"refund", "tea", "--number", number, "--key", "l"}).json().at("state"),
            "cancelled");
  EXPECT_EQ(sale({"refund", "tea", "--number", number, "--key", "m"}).status, 75);
  EXPECT_EQ(sale({"refund", "tea", "--number", "TE0", "--key", "m"}).json().at("outcome"),
            "unknown");
  EXPECT_EQ(sale({"refund", "tea", "--number", number}).status, 64);
  EXPECT_EQ(sale({"replay", "tea"}).json().at("replayed"), 0);
  EXPECT_EQ(sale({"audit", "tea"}).status, 0);
  EXPECT_EQ(sale({"archive", "tea"}).json().at("open").at("messages"), 2) << "and says so";
}

TEST_F(SaleProgram, SV12_APaymentThatPaidNothingIsListedAndSettled) {
  ASSERT_EQ(
      sale({"create", "tea", "--stock", "9", "--type", "TE", "--price", "5", "--currency", "CNY"})
          .status,
      0);
  EXPECT_EQ(sale({"payments", "tea"}).status, 78) << "there is no database";
  sale({"buy", "tea", "--buyer", "ann"});
  ASSERT_EQ(sale({"work", "tea", "--until-empty"}).status, 0);
  const auto orders = open_order_store("sqlite:" + (folder_ / "orders.db").string());
  for (const auto* of : {"tea", "cake"})
    orders->payments().keep({"acme", fmt::format("for {}", of), of, "TE1", 7, "CNY"});
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"payments", "--state"});
    return sale(words).json().at("payments").size();
  };
  EXPECT_EQ(listed({"waiting"}), 2U) << "of all sales";
  EXPECT_EQ(listed({"waiting", "tea"}), 1U);
  EXPECT_EQ(sale({"payments", "--state", "lost"}).status, 64);
  const auto settle = [&](const std::string& event, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"settle", "--provider", "acme",     "--event",  event,
                                   "--by",   "ann",        "--reason", "by a call"};
    words.insert(words.end(), more.begin(), more.end());
    return sale(words);
  };
  EXPECT_EQ(settle("unheard").status, 75);
  EXPECT_EQ(settle("for tea").json().at("payment").at("state"), "settled");
  EXPECT_EQ(settle("for tea", {"--refund"}).status, 75);
  EXPECT_EQ(settle("for cake", {"--refund"}).json().at("payment").at("note"),
            "refunding by ann: by a call");
  EXPECT_EQ(settle("for cake", {"--refund"}).status, 0) << "it is sent at once";
  EXPECT_EQ(listed({"waiting"}), 0U);
  EXPECT_EQ(sale({"settle", "--provider", "acme", "--event", "for tea", "--by", "ann"}).status, 64);
  EXPECT_EQ(sale({"replay", "tea", "--message", "1:1"}).status, 75);
  EXPECT_EQ(sale({"replay", "tea", "--message", "1"}).status, 64);
  EXPECT_EQ(sale({"audit", "tea"}).status, 0);
}

}  // namespace
}  // namespace sluice::test
