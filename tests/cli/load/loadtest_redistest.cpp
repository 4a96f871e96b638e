// `sluice loadtest` as a process: at the real service, and at servers that lie, break off, are
// busy, or are none.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/descriptor.hpp"
#include "cli/program.hpp"
#include "http/response.hpp"
#include "http/server.hpp"
#include "server/curl.hpp"
#include "support/certificates.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// `sluice serve` with an embedded engine and SQLite.
class Shop {
 public:
  Shop(const TempDir& folder, std::vector<std::string> options) : output_(folder / "serve.out") {
    std::vector<std::string> line{
        built_path("sluice-serve"), "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--data",
        (folder / "data").string(), "--notice", "0s",          "--json"};
    line.insert(line.end(), options.begin(), options.end());
    process_.emplace(line, ProcessOptions{.directory = folder.path(), .output = output_});
    EXPECT_TRUE(comes_true([&] { return read_file(output_).find("\"port\":") != npos; }));
    const auto text = read_file(output_);
    is_tls_ = text.find("https://") != npos;
    port_ = std::stoi(text.substr(text.find("\"port\":") + 7));
  }
  std::string url() const {
    return fmt::format("{}://127.0.0.1:{}", is_tls_ ? "https" : "http", port_);
  }
  Process& process() { return *process_; }

 private:
  static constexpr auto npos = std::string::npos;
  std::filesystem::path output_;
  std::optional<Process> process_;
  int port_ = 0;
  bool is_tls_ = false;
};

/// A service that says of each click what the test wants.
class Liar {
 public:
  using Tells = std::function<http::Response(int click)>;

  explicit Liar(Tells tells) : tells_(std::move(tells)), server_(system_clock(), routes(), {}) {}
  std::string url() const { return fmt::format("http://127.0.0.1:{}", server_.port()); }

  static http::Response order(int status, std::string_view number, int id) {
    return http::json(
        status,
        Json::object(
            {{"id", fmt::to_string(id)}, {"number", number}, {"units", 1}, {"recorded", true}}));
  }

  std::atomic<int> clicks{0};
  Tells orders = [](int) { return http::json(404, Json::object({})); };
  /// Of the sale, once there were clicks.
  Tells looks = [](int) {
    return http::json(200, Json::object({{"stock", 1'000'000}, {"sold", 0}}));
  };

 private:
  static http::Route route(std::string method, std::string path, http::Handler handler) {
    return {.method = method,
            .path = path,
            .operation = method + path,
            .summary = "For tests",
            .answers = {{200, "Fine", R"({"type":"object"})"}},
            .handler = std::move(handler)};
  }
  http::Routes routes() {
    http::Routes routes;
    routes.add(route("GET", "/v1/sales/tea", [this](http::Request&&, http::Responder&& respond) {
      respond.send(clicks > 0 ? looks(clicks)
                              : http::json(200, Json::object({{"stock", 1'000'000}, {"sold", 0}})));
    }));
    routes.add(route(
        "GET", "/v1/sales/tea/orders/{order}",
        [this](http::Request&&, http::Responder&& respond) { respond.send(orders(clicks)); }));
    routes.add(route(
        "POST", "/v1/sales/tea/orders",
        [this](http::Request&&, http::Responder&& respond) { respond.send(tells_(++clicks)); }));
    return routes;
  }

  Tells tells_;
  http::Server server_;
};

/// Answers each connection with the same bytes, whatever it is asked, and closes it.
class Babbler {
 public:
  explicit Babbler(std::string bytes) : bytes_(std::move(bytes)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.number(), name, size), 0);
    EXPECT_EQ(::listen(listener_.number(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.number(), name, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread{[this] { serve(); }};
  }
  ~Babbler() { ::shutdown(listener_.number(), SHUT_RDWR); }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  void serve() {
    for (;;) {
      const int client = ::accept(listener_.number(), nullptr, nullptr);
      if (client < 0) return;
      const Descriptor socket{client};
      char request[4096];
      if (::recv(client, request, sizeof request, 0) > 0)
        static_cast<void>(::send(client, bytes_.data(), bytes_.size(), MSG_NOSIGNAL));
    }
  }

  const std::string bytes_;
  Descriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  int port_ = 0;
  std::jthread thread_;
};

/// What the sale says of itself; 0 while nobody answers.
std::int64_t sold_at(std::uint16_t port) try {
  const auto answer = ask(port, "GET", "/v1/sales/tea").json();
  const auto* const sold = answer.find("sold");
  return sold ? *sold->as_integer() : 0;
} catch (const std::system_error&) {
  return 0;
}

class LoadTest : public Program {
 protected:
  Ran load(const std::string& url, std::vector<std::string> more) {
    more.insert(more.begin(), {"--json", "loadtest", url, "--sale", "tea"});
    return run(more);
  }
};

TEST_F(LoadTest, AThousandBuyersOfAHundredUnitsAreToldTheTruth) {
  Shop shop{folder_, {"--sale", "tea=100"}};
  const auto ran = load(shop.url(), {"--buyers", "1000", "--repeats", "1", "--audit"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto told = ran.json();
  EXPECT_EQ(told["orders"], 100);
  EXPECT_EQ(told["repeats_same"], 100);
  EXPECT_EQ(told["outcomes"]["click"]["409 sold-out"], 900);
  EXPECT_EQ(told["after"]["sold"], 100);
  EXPECT_EQ(told["latencies"]["audit"]["count"], 100);
}

TEST_F(LoadTest, AnOpenCrowdOfSeveralUnitsSomeOfThemSlow) {
  Shop shop{folder_, {"--sale", "tea=5000"}};
  const auto ran = load(shop.url(), {"--rate", "200", "--for", "1s", "--units", "3", "--slow",
                                     "0.1", "--slow-time", "300ms", "--think", "20ms"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto told = ran.json();
  EXPECT_EQ(told["buyers"], 200);
  EXPECT_EQ(told["orders"], 200);
  EXPECT_GT(told["units"], 200);
  EXPECT_GT(told["latencies"]["what was sent slowly"]["count"], 0);
}

TEST_F(LoadTest, FindsTheHighestRateByItself) {
  Shop shop{folder_, {"--sale", "tea=900000"}};
  const auto ran = load(shop.url(), {"--for", "1s"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto told = ran.json();
  EXPECT_GT(told["highest_per_second"], told["rate"]);
  EXPECT_GT(told["orders"], told["buyers"]) << "those of the search count, too";
}

TEST_F(LoadTest, SignsItsBuyersTokensAndGoesThroughTheWaitingRoom) {
  const auto keys = folder_ / "keys";
  std::ofstream{keys} << "k1 "
                      << "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
                      << "\n";
  std::filesystem::permissions(keys, std::filesystem::perms::owner_read);
  Shop shop{folder_, {"--sale", "tea=20", "--room", "tea=100/50/5m", "--keys", keys.string()}};
  const auto ran =
      load(shop.url(), {"--buyers", "30", "--queue", "--keys", keys.string(), "--audit"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json()["orders"], 20) << ran.output;
  EXPECT_EQ(ran.json()["outcomes"]["enter the queue"]["200"], 30);
}

TEST_F(LoadTest, SpeaksTlsWithAServerWhoseAuthorityItTrusts) {
  const Certificates certificates;
  Shop shop{folder_,
            {"--sale", "tea=20", "--certificate", certificates["server.pem"], "--key",
             certificates["server.key"]}};
  const auto ran = load(shop.url(), {"--buyers", "30", "--ca", certificates["ca.pem"], "--audit"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json()["orders"], 20);
  const auto stranger = load(shop.url(), {"--buyers", "30", "--tries", "1"});
  EXPECT_EQ(stranger.status, 69) << stranger.output;
  EXPECT_TRUE(stranger.says("not trusted")) << stranger.output;
}

TEST_F(LoadTest, ALiarWhoSellsANumberTwiceIsFound) {
  Liar liar{[](int click) {
    return Liar::order(201, fmt::format("TEA{:04}", click == 7 ? 3 : click), click);
  }};
  const auto ran = load(liar.url(), {"--buyers", "10", "--repeats", "0", "--shared"});
  EXPECT_EQ(ran.status, 1) << ran.output;
  const auto told = ran.json();
  ASSERT_EQ(told["breaches"], 1);
  EXPECT_EQ(told["evidence"][0]["promise"], "an order number is given once");
  EXPECT_NE(told["evidence"][0]["evidence"].get<std::string>().find("TEA0003"), std::string::npos);
}

TEST_F(LoadTest, ASaleThatDoesNotCountWhatItToldIsFound) {
  Liar liar{[](int click) { return Liar::order(201, fmt::format("TEA{:04}", click), click); }};
  const auto ran = load(liar.url(), {"--buyers", "10", "--repeats", "0"});
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_EQ(ran.json()["evidence"][0]["promise"], "the sale counts what buyers were told");
}

// What was not seen is not said to be true.
TEST_F(LoadTest, ASaleThatIsNotShownAfterwardsIsNotProved) {
  for (const int status : {200, 404, 502}) {
    Liar liar{[](int click) { return Liar::order(201, fmt::format("TEA{:04}", click), click); }};
    liar.looks = [status](int) { return http::json(status, Json::object({{"name", "tea"}})); };
    const auto ran =
        load(liar.url(), {"--buyers", "5", "--repeats", "0", "--no-look", "--tries", "1"});
    EXPECT_EQ(ran.status, 69) << status << ran.output;
    EXPECT_EQ(ran.json()["ok"], false);
    EXPECT_EQ(ran.json()["unseen"][0], "how the sale stands afterwards") << ran.output;
    EXPECT_EQ(ran.json()["breaches"], 0);
  }
}

TEST_F(LoadTest, AServiceThatAnswersNoClickIsNotProved) {
  Liar liar{[](int) { return http::json(500, Json::object({})); }};
  const auto ran = run({"loadtest", liar.url(), "--sale", "tea", "--buyers", "5", "--tries", "1"});
  EXPECT_EQ(ran.status, 69) << ran.output;
  EXPECT_TRUE(ran.says("no click had a last answer")) << ran.output;
  EXPECT_FALSE(ran.says("every promise held")) << ran.output;
}

/// Each answer to a click: a sale that has granted or refused nothing has kept no promise.
TEST_F(LoadTest, NU08_WhereNobodyWasDecidedNothingIsProved) {
  const std::pair<int, const char*> rows[] = {
      {400, "bad-body"},  {401, "unknown-buyer"},  {403, "not-inside"},
      {403, "not-yours"}, {404, "no-sale"},        {422, "other-units"},
      {409, "sold-out"},  {409, "already-bought"}, {410, "closed"}};
  for (const auto& [status, problem] : rows) {
    Liar liar{[status = status, problem = problem](int) {
      return http::json(status,
                        Json::object({{"type", fmt::format("urn:sluice:problem:{}", problem)}}));
    }};
    const auto ran =
        run({"loadtest", liar.url(), "--sale", "tea", "--buyers", "5", "--tries", "1"});
    const bool is_decided = status == 409 || status == 410;
    EXPECT_EQ(ran.status, is_decided ? 0 : 69) << problem << ran.output;
    EXPECT_EQ(ran.says("every promise held"), is_decided) << problem << ran.output;
    EXPECT_EQ(ran.says("--queue"), std::string_view{problem} == "not-inside") << ran.output;
  }
}

TEST_F(LoadTest, OrdersThatCannotBeLookedAtAreSaidAndAccuseNobody) {
  Liar liar{[](int click) { return Liar::order(201, fmt::format("TEA{:04}", click), click); }};
  liar.orders = [](int) { return http::json(500, Json::object({})); };
  const auto ran =
      load(liar.url(), {"--buyers", "5", "--repeats", "0", "--tries", "1", "--shared", "--audit"});
  EXPECT_EQ(ran.status, 69) << ran.output;
  EXPECT_EQ(ran.json()["unseen"][0], "5 orders that could not be looked at") << ran.output;
}

TEST_F(LoadTest, OneWhoIsBusyIsAskedAgainWhenHeSays) {
  Liar liar{[](int click) {
    if (click > 5) return Liar::order(201, fmt::format("TEA{:04}", click), click);
    auto busy = http::problem({"too_many_requests", 429, "Later"});
    http::add_retry_after(busy, 1s);
    return busy;
  }};
  const auto ran = load(liar.url(), {"--buyers", "5", "--repeats", "0", "--shared"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json()["outcomes"]["click"]["429 too-many-requests"], 5);
  EXPECT_EQ(ran.json()["orders"], 5);
  EXPECT_GE(ran.json()["seconds"], 0.5);
}

TEST_F(LoadTest, WhatIsNoServiceIsSaid) {
  const std::pair<std::string, std::string> cases[] = {
      {"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"},
      {"", "closed"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "closed within an answer"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), "16384"}};
  for (const auto& [bytes, says] : cases) {
    Babbler babbler{bytes};
    const auto ran = load(babbler.url(), {"--buyers", "5", "--tries", "2"});
    EXPECT_EQ(ran.status, 69) << ran.output;
    EXPECT_TRUE(ran.says(says)) << ran.output;
  }
}

TEST_F(LoadTest, OneThatAnswersNothingIsGivenUpInTime) {
  const Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.number(), name, size), 0);
  ASSERT_EQ(::listen(listener.number(), 64), 0);
  ASSERT_EQ(::getsockname(listener.number(), name, &size), 0);
  const auto ran = load(fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port)),
                        {"--buyers", "5", "--tries", "2", "--timeout", "200ms"});
  EXPECT_EQ(ran.status, 69) << ran.output;
  EXPECT_TRUE(ran.says("no answer in time")) << ran.output;
}

TEST_F(LoadTest, AUsersMistakeIsAnsweredInOneLine) {
  Shop shop{folder_, {"--sale", "tea=100"}};
  struct Mistake {
    std::vector<std::string> words;
    int exit;
    std::string_view says;
  };
  const Mistake mistakes[] = {
      {{"http://10.1.2.3:80", "--sale", "tea"}, 64, "--remote"},
      {{"http://[2001:db8::1]:80", "--sale", "tea"}, 64, "--remote"},
      {{"ftp://127.0.0.1", "--sale", "tea"}, 64, "http://HOST:PORT"},
      {{"http://127.0.0.1/v1/sales", "--sale", "tea"}, 64, "http://HOST:PORT"},
      {{"http://ann:secret@127.0.0.1", "--sale", "tea"}, 64, "http://HOST:PORT"},
      {{shop.url()}, 64, "--sale"},
      {{shop.url(), "--sale", "coffee"}, 64, "no-sale"},
      {{shop.url(), "--sale", "tea", "--for", "0s"}, 64, "--for"},
      {{shop.url(), "--sale", "tea", "--repeats", "2"}, 64, "--repeats"},
      {{shop.url(), "--sale", "tea", "--keys", "/nowhere"}, 64, "/nowhere"},
      {{shop.url(), "--sale", "tea", "--also", "https://127.0.0.1:1"}, 64, "https"},
      {{"http://127.0.0.1:1", "--sale", "tea", "--tries", "1"}, 69, "refused"}};
  for (const auto& [words, exit, says] : mistakes) {
    auto line = words;
    line.insert(line.begin(), "loadtest");
    const auto ran = run(line);
    EXPECT_EQ(ran.status, exit) << ran.output;
    EXPECT_TRUE(ran.says(says)) << ran.output << says;
    EXPECT_FALSE(ran.says("secret")) << ran.output;
  }
}

TEST_F(LoadTest, ASignalEndsItAndItStillSaysWhatThereWas) {
  Liar liar{[](int click) { return Liar::order(201, fmt::format("TEA{:04}", click), click); }};
  auto running = start({"--json", "loadtest", liar.url(), "--sale", "tea", "--rate", "500", "--for",
                        "10m", "--shared", "--repeats", "0"},
                       "interrupted");
  EXPECT_TRUE(comes_true([&] { return liar.clicks > 100; }));
  running.signal(SIGINT);
  EXPECT_EQ(running.wait_for(30s), 0);
  const Ran ran{0, read_file(folder_ / "interrupted")};
  EXPECT_EQ(ran.json()["complete"], false) << ran.output;
  EXPECT_GE(ran.json()["orders"], 100);
}

// The service dies and comes back under load: buyers repeat, and nobody was told what is not so.
TEST_F(LoadTest, AServiceThatIsKilledAndStartedAgainIsNoticedByNoBuyer) {
  const auto port = free_port();
  const std::vector<std::string> options{"--sale", "tea=100000", "--listen",
                                         fmt::format("127.0.0.1:{}", port)};
  std::optional<Shop> shop;
  shop.emplace(folder_, options);
  auto running = start({"--json", "loadtest", shop->url(), "--sale", "tea", "--rate", "300",
                        "--for", "4s", "--tries", "100", "--patience", "60s", "--audit"},
                       "through");
  for (int i = 0; i < 2; ++i) {
    const auto sold = (i + 1) * 300;
    EXPECT_TRUE(comes_true([&] { return sold_at(port) > sold; }));
    shop->process().kill();
    shop.reset();
    std::filesystem::remove(folder_ / "serve.out");
    shop.emplace(folder_, options);
  }
  EXPECT_EQ(running.wait_for(100s), 0);
  const Ran ran{0, read_file(folder_ / "through")};
  EXPECT_EQ(ran.json()["given_up"], 0) << ran.output;
  EXPECT_EQ(ran.json()["orders"], 1200) << ran.output;
}

TEST_F(LoadTest, TheDemoOverHttpIsVerifiedAsTheOtherOne) {
  for (const auto& ran : {run({"--json", "demo", "--http", "--buyers", "500"}),
                          run_on_redis({"--json", "demo", "--http", "--buyers", "500", "--stock",
                                        "50", "--instances", "2"})}) {
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.json()["ok"], true);
    EXPECT_EQ(ran.json()["figures"]["left"], 0) << ran.output;
  }
  EXPECT_EQ(PlainClient{server_.port()}.command({"KEYS", "*demo*"}).as_items().size(), 0U)
      << "it leaves nothing on a server that others use";
}

TEST_F(LoadTest, TheDemoOverHttpServesNobodyElsesSales) {
  run_on_redis({"sale", "create", "coffee", "--stock", "5", "--type", "CO"});
  const auto ran = run_on_redis({"demo", "--http", "--buyers", "10"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(run_on_redis({"sale", "status", "coffee"}).says("0 of 5 sold")) << "it is as it was";
}

}  // namespace
}  // namespace sluice::test
