// curl as an independent client, in plain and over TLS, and HAProxy between it and us: they know
// nothing of our reading.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client.hpp"
#include "net/tls.hpp"
#include "serving.hpp"
#include "sluice/clock.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::http {
namespace {

using testing::HasSubstr;

/// Headers and bodies of all answers. The exit code of curl, if it is not 0.
std::string curl(std::vector<std::string> arguments) {
  const test::TempDir folder;
  const auto output = folder / "output";
  arguments.insert(arguments.begin(),
                   {"curl", "--silent", "--show-error", "--include", "--max-time", "60"});
  test::Process process{arguments, {.directory = {}, .environment = {}, .output = output}};
  const int code = process.wait();
  std::ifstream file{output};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  return code == 0 ? text : "curl exits with " + std::to_string(code) + ": " + text;
}

std::string url(const Serving& serving, const std::string& path,
                const std::string& scheme = "http") {
  return scheme + "://127.0.0.1:" + std::to_string(serving.port()) + path;
}

TEST(HttpPeer, CurlKeepsTheConnection) {
  Serving serving;
  const auto output =
      curl({"--verbose", url(serving, "/hello"), url(serving, "/items/caf%C3%A9?q=1")});
  EXPECT_THAT(output, HasSubstr("hello"));
  EXPECT_THAT(output, HasSubstr("caf\xc3\xa9|1"));
  EXPECT_THAT(output, HasSubstr("Re-using existing connection"));
}

TEST(HttpPeer, CurlSendsBodies) {
  Serving serving;
  EXPECT_THAT(curl({"--data", "a=b", url(serving, "/echo")}), HasSubstr("\r\n\r\na=b"));
  const std::string large(10'000, 'x');
  EXPECT_THAT(curl({"--expect100-timeout", "30", "-H", "Expect: 100-continue", "--data", large,
                    url(serving, "/echo")}),
              testing::AllOf(HasSubstr("100 Continue"), HasSubstr("\r\n\r\n" + large)));
  EXPECT_THAT(curl({"-H", "Transfer-Encoding: chunked", "--data", large, url(serving, "/echo")}),
              HasSubstr("\r\n\r\n" + large));
  EXPECT_THAT(curl({"--head", url(serving, "/hello")}), HasSubstr("Content-Length: 5\r\n"));
}

TEST(HttpPeer, CurlSpeaksTls) {
  test::Certificates certificates;
  const auto context = net::TlsContext::for_server(
      {.certificate = certificates["server.pem"], .key = certificates["server.key"], .ca = {}});
  Serving serving{{.tls = context}};
  const auto ca = certificates["ca.pem"];
  EXPECT_THAT(
      curl({"--cacert", ca, url(serving, "/hello", "https"), url(serving, "/hello", "https")}),
      HasSubstr("hello"));
  EXPECT_THAT(
      curl({"--cacert", ca, "--data", std::string(10'000, 'x'), url(serving, "/echo", "https")}),
      HasSubstr(std::string(10'000, 'x')));
  EXPECT_THAT(curl({"--cacert", ca, "-H", "Host: a b", url(serving, "/hello", "https")}),
              HasSubstr("400"));
  EXPECT_THAT(curl({url(serving, "/hello", "https")}), HasSubstr("curl exits with 60"));
  EXPECT_THAT(curl({url(serving, "/hello", "http")}), HasSubstr("curl exits with"));
  EXPECT_TRUE(test::comes_true(
      [&] { return serving.metric("sluice_http_refused_total{cause=\"tls\"}") >= "2"; }));
}

TEST(HttpPeer, ReplacedCertificatesAreShown) {
  test::Certificates certificates;
  const auto context = [&] {
    return net::TlsContext::for_server(
        {.certificate = certificates["server.pem"], .key = certificates["server.key"], .ca = {}});
  };
  Serving serving{{.tls = context()}};
  certificates.make("server", "DNS:elsewhere");
  serving.server.replace_tls(context());
  EXPECT_TRUE(test::comes_true([&] {
    return curl({"--cacert", certificates["ca.pem"], url(serving, "/hello", "https")})
        .starts_with("curl exits with 60");
  }));
}

TEST(HttpPeer, V39_AClientThatBeginsNoTlsIsEndedInTime) {
  using namespace std::chrono_literals;
  test::Certificates certificates;
  VirtualClock clock;
  Serving serving{{.loops = 1,
                   .limits = {.idle_time = std::chrono::hours{100}},
                   .tls = net::TlsContext::for_server({.certificate = certificates["server.pem"],
                                                       .key = certificates["server.key"],
                                                       .ca = {}})},
                  clock};
  RawClient client{serving.port()};
  EXPECT_TRUE(test::comes_true([&] {
    clock.advance(1s);
    return client.has_input();
  }));
  EXPECT_TRUE(client.is_closed());
}

/// HAProxy on a port that answers once this lives, with one server, ours.
class HaProxy {
 public:
  HaProxy(const Serving& serving, std::string_view server_options) : port_(test::free_port()) {
    std::ofstream{folder_ / "cfg"} << fmt::format(
        "defaults\n  mode tcp\n  timeout connect 20s\n  timeout client 60s\n  timeout server 60s\n"
        "listen us\n  bind 127.0.0.1:{}\n  server us 127.0.0.1:{} {}\n",
        port_, serving.port(), server_options);
    process_.emplace(
        std::vector<std::string>{"haproxy", "-db", "-f", (folder_ / "cfg").string()},
        test::ProcessOptions{.directory = {}, .environment = {}, .output = folder_ / "output"});
    EXPECT_TRUE(test::comes_true([&] {
      try {
        const RawClient client{port_};
        return true;
      } catch (const std::system_error&) {
        return false;
      }
    }));
  }
  static bool is_there() { return std::system("command -v haproxy >/dev/null 2>&1") == 0; }

  /// The body, by a client that has this address. Empty: the server closes.
  std::string ask_from(const char* address) const {
    RawClient client{port_, address};
    const auto whole = client.ask("GET /client HTTP/1.1\r\nHost: shop\r\n\r\n");
    const auto end = whole.find("\r\n\r\n");
    return end == whole.npos ? whole : whole.substr(end + 4);
  }

 private:
  const test::TempDir folder_;
  std::uint16_t port_;
  std::optional<test::Process> process_;
};

TEST(HttpPeer, HaProxySaysForWhomItConnects) {
  if (!HaProxy::is_there()) GTEST_SKIP() << "there is no haproxy";
  Serving serving{{.proxy_protocol = {"127.0.0.0/8"}}};
  for (const auto* const options :
       {"send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,authority,ssl,cert-cn",
        "send-proxy-v2 check check-send-proxy inter 20ms"}) {
    const HaProxy balancer{serving, options};
    EXPECT_EQ(balancer.ask_from("127.0.0.77"), "127.0.0.77") << options;
    EXPECT_EQ(balancer.ask_from("127.0.0.78"), "127.0.0.78") << options;
  }
  for (const auto* const options : {"send-proxy", ""}) {
    const HaProxy balancer{serving, options};
    EXPECT_EQ(balancer.ask_from("127.0.0.77"), "") << options;
  }
}

}  // namespace
}  // namespace sluice::http
