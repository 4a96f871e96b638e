/// The program as an operator has it: started, stopped, reloaded, beside nutcracker.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <tuple>

#include "proxy/support/listening.hpp"
#include "proxy/support/load.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

std::optional<int> end_of(ProxyProgram& proxy) { return proxy.process().wait_for(20s); }

bool has_said(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

/// Until the log says so; false: it does not within 20 seconds.
bool comes_to_log(const ProxyProgram& proxy, std::string_view what) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!has_said(proxy.log(), what)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

TEST(RunTest, ServesAndEndsWithOneOnInt) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()})};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  EXPECT_EQ(client.command({"GET", "a"}).as_text(), "1");
  EXPECT_EQ(text_of(proxy.pid_file()), std::to_string(proxy.process().pid()));
  proxy.process().signal(SIGINT);
  EXPECT_EQ(end_of(proxy), 1);
  EXPECT_FALSE(std::filesystem::exists(proxy.pid_file()));
}

TEST(RunTest, IsNutcrackerWhereItIsCalledSo) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}),
                     {.process = {}, .arguments = {}, .as_nutcracker = true}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"PING"}).as_text(), "PONG");
}

/// SETs and GETs that the server has done.
std::uint64_t done_by(const RedisServer& server) {
  PlainClient client{server.port()};
  const auto stats = client.command({"INFO", "commandstats"}).as_text();
  std::uint64_t done = 0;
  for (const std::string row : {"cmdstat_set:calls=", "cmdstat_get:calls="})
    if (const auto at = stats.find(row); at != stats.npos)
      done += std::stoull(stats.substr(at + row.size()));
  return done;
}

/// After TERM a new connection is refused, or reset if the kernel had taken it and the proxy had
/// not yet: then the client gets no reply, and nothing that it asked is done.
TEST(RunTest, X27_TermUnderLoadAnswersWhatIsAsked) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()}),
                     {.process = {"drain_timeout: 10000"}, .arguments = {}}};
  Load load{proxy.port(), {.clients = 4, .depth = 16, .reconnects = true}};
  ASSERT_TRUE(load.goes_on());
  proxy.process().terminate();
  EXPECT_EQ(end_of(proxy), 0);
  const auto count = load.stop();
  EXPECT_EQ(count.wrong, 0U) << count.first_trouble;
  EXPECT_EQ(count.errors, 0U) << count.first_trouble;
  EXPECT_EQ(count.lost, count.unserved) << "some had replies, not all: " << count.first_trouble;
  EXPECT_EQ(done_by(one) + done_by(two), count.replies) << "what was done was answered";
  EXPECT_TRUE(has_said(proxy.log(), "drained"));
}

TEST(RunTest, TermGivesUpOnAClientThatHasNotDoneWhenItsTimeIsOver) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}),
                     {.process = {"drain_timeout: 100"}, .arguments = {}}};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"PING"}).as_text(), "PONG");
  server.stop();
  client.send("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  proxy.process().terminate();
  EXPECT_EQ(end_of(proxy), 0);
  EXPECT_TRUE(has_said(proxy.log(), "drain_timeout is over"));
  server.cont();
}

TEST(RunTest, ASecondTermEndsAtOnce) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()})};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"PING"}).as_text(), "PONG");
  server.stop();
  client.send("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  proxy.process().terminate();
  ASSERT_TRUE(comes_to_log(proxy, "no more clients are accepted"));
  proxy.process().terminate();
  EXPECT_EQ(end_of(proxy), 1);
  server.cont();
}

TEST(RunTest, SignalsReopenTheLogAndChangeItsLevel) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()})};
  ASSERT_TRUE(comes_to_log(proxy, "started on pid"));
  std::filesystem::rename(proxy.directory() / "log", proxy.directory() / "old");
  proxy.process().signal(SIGHUP);
  proxy.process().signal(SIGTTIN);
  ASSERT_TRUE(comes_to_log(proxy, "the log level is 6 now"));
  proxy.process().signal(SIGTTOU);
  ASSERT_TRUE(comes_to_log(proxy, "the log level is 5 now"));
  EXPECT_TRUE(has_said(text_of(proxy.directory() / "old"), "reopening log file"));
}

TEST(RunTest, WhatCannotStartSaysWhy) {
  const TempDir folder;
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::built_path("sluice"), "proxy"});
    Process process{arguments,
                    {.directory = folder.path(), .environment = {}, .output = folder / "out"}};
    const int code = process.wait();
    return std::pair{code, text_of(folder / "out")};
  };
  auto [code, text] = run({"-c", "absent.yml"});
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(has_said(text, "nutcracker: configuration file 'absent.yml' syntax is invalid"))
      << text;

  std::ofstream{folder / "bad.yml"}
      << "alpha:\n  listen: 127.0.0.1:1\n  nonsense: 1\n  servers:\n   - 127.0.0.1:1:1\n";
  std::tie(code, text) = run({"-t", "-c", "bad.yml"});
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(has_said(text, "bad.yml:3: ")) << text;

  std::ofstream{folder / "tls.yml"}
      << "alpha:\n  listen: 127.0.0.1:1\n  listen_tls:\n    certificate: absent.pem\n"
         "    key: absent.key\n  servers:\n   - 127.0.0.1:1:1\n";
  std::tie(code, text) = run({"-t", "-c", "tls.yml"});
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(has_said(text, "pool 'alpha'") && has_said(text, "absent.pem") &&
              has_said(text, "No such file or directory"))
      << text;

  const RedisServer server;
  std::ofstream{folder / "taken.yml"} << "alpha:\n  listen: 127.0.0.1:" << server.port()
                                      << "\n  redis: true\n  servers:\n   - 127.0.0.1:1:1\n";
  std::tie(code, text) = run({"-c", "taken.yml", "-s", std::to_string(free_port())});
  EXPECT_EQ(code, 1);
  EXPECT_TRUE(has_said(text, "cannot listen on 127.0.0.1:" + std::to_string(server.port())))
      << text;
}

TEST(RunTest, ClientsBeyondTheLimitOfDescriptorsAreClosedAtOnce) {
  RedisServer server;
  // 40 descriptors: 32 are kept, one listens, one is for the server; so there are six clients.
  ProxyProgram proxy{redis_pool({server.port()}),
                     {.process = {}, .arguments = {}, .descriptors = 40}};
  std::vector<PlainClient> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back(proxy.port());
    EXPECT_EQ(clients.back().command({"PING"}).as_text(), "PONG");
  }
  PlainClient beyond{proxy.port()};
  EXPECT_EQ(beyond.read_raw(), "") << "closed without a word, as nutcracker does";
  EXPECT_EQ(clients.back().command({"SET", "a", "1"}).as_text(), "OK");
}

TEST(RunTest, ClientConnectionsMeansItOverAllWorkers) {
  RedisServer server;
  auto pool = redis_pool({server.port()});
  pool.insert(pool.begin(), "client_connections: 3");
  ProxyProgram proxy{pool, {.process = {"workers: 2"}, .arguments = {}}};
  const auto served_of_eight = [&] {
    std::vector<PlainClient> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back(proxy.port());
    return std::ranges::count_if(clients, [](PlainClient& client) {
      try {
        client.command({"PING"});
        return true;
      } catch (const std::system_error&) {
        return false;
      }
    });
  };
  // The connection by which the start was noticed may still be there, and then those of the last
  // look.
  std::ptrdiff_t served = 0;
  for (int i = 0; i < 100 && served < 3; ++i) served = served_of_eight();
  EXPECT_EQ(served, 3);
}

TEST(RunTest, ASignalItDiesOfIsInTheLogWithThoseBefore) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()})};
  std::filesystem::remove(proxy.log_file());
  const struct {
    int signal;
    const char* line;
  } rows[] = {{SIGHUP, "log file reopened after SIGHUP"},
              {SIGTTIN, "signal 21 (SIGTTIN) received"},
              {SIGTTOU, "signal 22 (SIGTTOU) received"},
              {SIGSEGV, "signal 11 (SIGSEGV) received, core dumping"}};
  for (const auto& row : rows) {  // of several that wait the kernel chooses
    proxy.process().signal(row.signal);
    EXPECT_TRUE(comes_to_log(proxy, row.line)) << row.line << " is not in\n" << proxy.log();
  }
  EXPECT_EQ(end_of(proxy), 128 + SIGSEGV);
  const auto log = text_of(proxy.log_file());
  for (const auto& row : rows) EXPECT_TRUE(has_said(log, row.line)) << row.line;
}

/// The most memory that a process has had, in bytes.
std::size_t peak_of(pid_t process) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) << 10;
  return 0;
}

TEST(RunTest, X26_AHugeValueIsHeldOnce) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()})};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"PING"}).as_text(), "PONG");
  const auto before = peak_of(proxy.process().pid());
  // Just beyond a power of two, where a buffer that doubles wastes the most.
  const std::string value(std::size_t{129} << 20, 'v');
  EXPECT_EQ(client.command({"SET", "huge", value}).as_text(), "OK");
  EXPECT_EQ(client.command({"GET", "huge"}).as_text() == value, true);
  EXPECT_EQ(client.command({"HELLO", "3"}).is_error(), false);
  EXPECT_EQ(client.command({"SET", "huge", value}).as_text(), "OK") << "behind a handshake";
  EXPECT_EQ(client.command({"GET", "huge"}).as_text() == value, true);
  if (!is_sanitized) {  // whose realloc() copies
    EXPECT_LT(peak_of(proxy.process().pid()) - before, value.size() * 5 / 4);
  }
}

/// What one client after the other gets, as text.
std::vector<std::string> conversation(std::uint16_t port,
                                      const std::vector<std::vector<std::string>>& commands) {
  PlainClient client{port};
  std::vector<std::string> replies;
  for (const auto& words : commands) replies.push_back(to_string(client.command(words)));
  return replies;
}

TEST(RunTest, AServerThatRefusesTheGreetingIsUsedAllTheSame) {
  const struct {
    std::string server, pool;
  } rows[] = {{"requirepass good", "redis_auth: bad"},
              {"databases 16", "redis_auth: bad"},
              {"databases 16", "redis_db: 99"}};
  for (const auto& row : rows) {
    RedisServer server{{row.server}};
    auto pool = redis_pool({server.port()});
    pool.insert(pool.begin(), row.pool);
    auto strict = pool;
    strict.insert(strict.begin(), "compat: strict");
    Nutcracker peer{pool};
    ProxyProgram proxy{strict};
    std::vector<std::vector<std::string>> commands{{"SET", "k", "v"}, {"GET", "k"}};
    if (row.pool == "redis_auth: bad") commands.insert(commands.begin(), {"AUTH", "bad"});
    EXPECT_EQ(conversation(proxy.port(), commands), conversation(peer.port(), commands))
        << row.server << ", " << row.pool;
  }
}

TEST(RunTest, APasswordThatTheServerHasNoUseForHarmsNobody) {
  RedisServer server;
  auto pool = redis_pool({server.port()});
  pool.insert(pool.begin(), "redis_auth: secret");
  ProxyProgram proxy{pool};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"AUTH", "secret"}).as_text(), "OK");
  EXPECT_EQ(client.command({"SET", "k", "v"}).as_text(), "OK");
}

/// The fields that do not hang on time, on addresses or on how bytes came in.
nlohmann::json comparable(const std::string& document) {
  auto json = nlohmann::json::parse(document);
  for (const char* field : {"source", "uptime", "timestamp", "version"}) json.erase(field);
  return json;
}

TEST(RunTest, ItsStatisticsAreNutcrackers) {
  RedisServer one, two;
  auto pool = redis_pool({one.port(), two.port()});
  pool.insert(pool.begin(), {"distribution: modula", "redis_db: 3"});
  Nutcracker peer{pool, {"-i", "100"}};
  pool.insert(pool.begin(), "compat: strict");
  ProxyProgram proxy{pool, {.process = {}, .arguments = {"-i", "100"}}};
  const auto traffic = [](std::uint16_t port) {
    PlainClient client{port};
    for (int i = 0; i < 50; ++i) {
      const auto key = "key" + std::to_string(i);
      client.command({"SET", key, key});
      client.command({"GET", key});
    }
    client.command(
        {"MGET", "key1", "key2", "key3", "key4", "key5", "key6", "key7", "key8", "key9"});
    for (const auto* bytes :
         {"\r\n", "*3\r\n*abcde\r\n", "*1\r\n$3\r\nGET\r\n", "*1\r\n$5\r\nMULTI\r\n",
          "*1\r\n$4\r\nQUIT\r\n", "*1\r\n$4\r\nQUIT\r\n"}) {
      PlainClient other{port};
      other.send(bytes);
      while (!other.read_raw().empty()) {
      }
    }
  };
  // Until those who looked whether it listens have been counted: one who was accepted, and left.
  const auto ends_before = [](std::uint16_t port) {
    int ends = 0;
    for (int left = 1000; left > 0 && ends == 0; --left) {
      std::this_thread::sleep_for(10ms);
      ends = nlohmann::json::parse(statistics_at(port)).at("alpha").at("client_eof").get<int>();
    }
    return ends;
  };
  const int their_ends = ends_before(peer.stats_port());
  const int our_ends = ends_before(proxy.stats_port());
  traffic(peer.port());
  traffic(proxy.port());
  nlohmann::json theirs, ours;
  for (int tries = 0; tries < 1000 && (theirs.empty() || theirs != ours); ++tries) {
    std::this_thread::sleep_for(20ms);
    theirs = comparable(statistics_at(peer.stats_port()));
    ours = comparable(proxy.statistics());
    theirs["alpha"]["client_eof"] = theirs["alpha"]["client_eof"].get<int>() - their_ends;
    ours["alpha"]["client_eof"] = ours["alpha"]["client_eof"].get<int>() - our_ends;
    for (auto* const both : {&theirs, &ours}) {  // who looked, and when, differs
      for (const char* field : {"total_connections", "curr_connections"}) both->erase(field);
      both->at("alpha").erase("fragments");  // which nutcracker 0.5.0 has and never counts
    }
  }
  EXPECT_EQ(theirs, ours);
}

}  // namespace
}  // namespace sluice::test
