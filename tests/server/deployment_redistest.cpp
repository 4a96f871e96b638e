// Several processes of sluice-serve as one service, and the certificates of one: what a deployment
// relies on and a process alone does not show.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "server/curl.hpp"
#include "server/served.hpp"
#include "server/shop_keys.hpp"
#include "support/certificates.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

using test::Served;

class Deployment : public testing::Test {
 protected:
  std::vector<std::string> options(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--store", redis_.url(), "--orders",
                               "sqlite:" + (folder_ / "orders.db").string(), "--sale", "tea=100"});
    return more;
  }

  std::string file(std::string_view name, std::string_view text) const {
    const auto path = (folder_ / name).string();
    std::ofstream{path} << text;
    ::chmod(path.c_str(), 0600);
    return path;
  }

  /// The exit code of curl with a purchase of ann's over TLS, and the head of the answer.
  std::pair<int, std::string> buy_by_curl(std::uint16_t port, const std::string& authority) const {
    const auto output = folder_ / "curl";
    test::Process curl{{"curl", "--silent", "--include", "--max-time", "60", "--cacert", authority,
                        "--request", "POST", "-H", "Sluice-Buyer: ann", "-H", "Idempotency-Key: 1",
                        fmt::format("https://localhost:{}/v1/sales/tea/orders", port)},
                       {.directory = {}, .environment = {}, .output = output}};
    const auto code = curl.wait();
    return {code, test::text_of(output)};
  }

  test::TempDir folder_;
  test::RedisServer redis_;
};

constexpr int not_trusted = 60;  // of curl: the certificate will not do

TEST_F(Deployment, CertificatesAreReplacedWhileItServes) {
  test::Certificates certificates;
  Served served{
      folder_, 0,
      options({"--certificate", certificates["server.pem"], "--key", certificates["server.key"]})};
  ASSERT_TRUE(served.begins()) << served.output();
  const auto ca = certificates["ca.pem"];
  const auto bought = buy_by_curl(served.port(), ca);
  EXPECT_EQ(bought.first, 0);
  EXPECT_NE(bought.second.find(" 201 "), std::string::npos) << bought.second;

  // The certificate without its key: the one of before stays in use.
  const auto key = test::text_of(certificates["server.key"]);
  certificates.make("server", "DNS:elsewhere");
  const auto new_key = test::text_of(certificates["server.key"]);
  std::ofstream{certificates["server.key"]} << key;
  EXPECT_TRUE(test::comes_true(
      [&] { return served.output().find("cannot be used") != std::string::npos; }));
  EXPECT_EQ(buy_by_curl(served.port(), ca).first, 0);

  // The key with a mode that the log objects to: its advice alone brings both into use.
  const auto prepared = file("prepared", new_key);
  ::chmod(prepared.c_str(), 0644);
  std::filesystem::rename(prepared, certificates["server.key"]);
  EXPECT_TRUE(
      test::comes_true([&] { return served.output().find("chmod 600") != std::string::npos; }));
  EXPECT_EQ(buy_by_curl(served.port(), ca).first, 0);
  ::chmod(certificates["server.key"].c_str(), 0600);
  EXPECT_TRUE(
      test::comes_true([&] { return buy_by_curl(served.port(), ca).first == not_trusted; }));
  served.process().terminate();
  EXPECT_EQ(served.process().wait(), 0) << served.output();
  EXPECT_EQ(served.output().find("PRIVATE"), std::string::npos);
}

TEST_F(Deployment, AKeyThatIsTakenOutOfTheFileIsGoodNoMore) {
  const auto ann = make_shop_key("ann", {Scope::operate});
  const auto bob = make_shop_key("bob", {Scope::operate});
  const auto keys = file("shop_keys", ann.line + "\n" + bob.line + "\n");
  Served served{folder_, 0, options({"--shop-keys", keys})};
  ASSERT_TRUE(served.begins()) << served.output();
  const auto status_of = [&](const MadeShopKey& who) {
    return test::ask(served.port(), "GET", "/v1/operate/session",
                     {{"Authorization", "Bearer " + who.key}})
        .status;
  };
  EXPECT_EQ(status_of(ann), 200);
  served.process().signal(SIGHUP);
  std::filesystem::rename(file("no keys", "ann operate\n"), keys);
  EXPECT_TRUE(test::comes_true(
      [&] { return served.output().find("cannot be used") != std::string::npos; }));
  EXPECT_EQ(status_of(ann), 200) << "the keys of before stay good";
  std::filesystem::rename(file("fewer", bob.line + "\n"), keys);
  EXPECT_TRUE(test::comes_true([&] { return status_of(ann) == 401; }));
  EXPECT_EQ(status_of(bob), 200);
}

// A buyer's requests go to any process: a ticket of one lets him in at the other, and one ticket is
// one place.
TEST_F(Deployment, ATicketOfOneProcessIsGoodAtTheOther) {
  const auto keys = file("keys", "k1 MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n");
  const auto how = options({"--keys", keys, "--room", "tea=1000/1"});
  Served first{folder_, 0, how};
  ASSERT_TRUE(first.begins()) << first.output();
  Served second{folder_, 1, how};
  ASSERT_TRUE(second.begins()) << second.output();

  const auto token_of = [&](const std::string& buyer) {
    const auto output = folder_ / buyer;
    test::Process program{{test::built_path("sluice-serve"), "token", "--keys", keys, "--buyer",
                           buyer, "--sale", "tea"},
                          {.directory = {}, .environment = {}, .output = output}};
    EXPECT_EQ(program.wait(), 0);
    auto text = test::text_of(output);
    while (text.ends_with('\n')) text.pop_back();
    return "Bearer " + text;
  };
  const auto ann = token_of("ann");
  const auto bob = token_of("bob");
  const auto enter = [](const Served& at, const std::string& who) {
    return test::ask(at.port(), "POST", "/v1/sales/tea/queue", {{"Authorization", who}});
  };
  const auto buy = [](const Served& at, const std::string& who, const std::string& ticket) {
    return test::ask(at.port(), "POST", "/v1/sales/tea/orders",
                     {{"Authorization", who}, {"Sluice-Ticket", ticket}, {"Idempotency-Key", "1"}});
  };
  const auto inside = enter(first, ann);
  ASSERT_EQ(inside.text("state"), "inside") << inside.body;
  const auto waiting = enter(second, bob);
  ASSERT_EQ(waiting.text("state"), "waiting") << waiting.body;
  EXPECT_EQ(buy(first, bob, waiting.text("ticket")).problem(), "not-inside");
  const auto bought = buy(second, ann, inside.text("ticket"));
  EXPECT_EQ(bought.status, 201) << bought.body;
  const auto again = buy(first, ann, inside.text("ticket"));
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.text("id"), bought.text("id"));
  EXPECT_TRUE(
      test::comes_true([&] { return buy(first, bob, waiting.text("ticket")).status == 201; }));
}

}  // namespace
}  // namespace sluice::server
