// Clients that are slow, silent, many, or never read: bytes in any pieces, memory within bounds,
// the others served.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>

#include "proxy/flow/random_load.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "resp/writer.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

// Their shadow memory and quarantine are no measure of ours.
constexpr std::size_t mib = std::size_t{1} << 20;

std::string wire(std::initializer_list<std::string_view> words) {
  std::string bytes;
  resp::append_command(bytes, {words.begin(), words.size()});
  return bytes;
}

class Clients : public testing::Test {
 protected:
  ProxyUnderTest& with(std::vector<std::string> settings, std::vector<std::string> process = {},
                       Clock& clock = system_clock()) {
    return proxy_.emplace(std::vector{first_.port(), second_.port()}, std::move(settings),
                          std::move(process), clock);
  }
  PlainClient client() const { return PlainClient{proxy_->port()}; }
  std::int64_t memory() { return proxy_->proxy().memory(); }
  /// The others are served, and not slowly.
  void expect_service() {
    auto other = client();
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(other.command({"SET", fmt::format("other:{}", i), "x"}).as_text(), "OK");
  }

  /// Each asks for 40 MiB and reads none of it.
  std::vector<PlainClient> ten_greedy_clients() {
    EXPECT_EQ(client().command({"SET", "big", std::string(mib, 'b')}).as_text(), "OK");
    std::string requests;
    for (int i = 0; i < 40; ++i) requests += wire({"GET", "big"});
    std::vector<PlainClient> greedy;
    for (int i = 0; i < 10; ++i) {
      greedy.push_back(client());
      greedy.back().send(requests);
    }
    return greedy;
  }

  RedisServer first_, second_;
  std::optional<ProxyUnderTest> proxy_;
};

TEST_F(Clients, AByteAtATime) {
  with({});
  auto client = this->client();
  const std::string requests =
      wire({"SET", "a", "1"}) + wire({"MSET", "a", "2", "b", "3", "c", "4"}) +
      wire({"MGET", "a", "b", "c", "d"}) + wire({"DEL", "a", "b"}) + wire({"PING"}) + "GET c\r\n" +
      wire({"NOSUCH", "x"}) + wire({"GET", "c"});
  for (const char byte : requests) client.send({&byte, 1});
  EXPECT_EQ(client.read().as_text(), "OK");
  EXPECT_EQ(client.read().as_text(), "OK");
  EXPECT_EQ(client.read().as_items().size(), 4U);
  EXPECT_EQ(client.read().as_integer(), 2);
  EXPECT_EQ(client.read().as_text(), "PONG");
  EXPECT_EQ(client.read().as_text(), "4");
  EXPECT_TRUE(client.read().is_error());
  EXPECT_EQ(client.read().as_text(), "4");
}

TEST_F(Clients, CutAtEveryByte) {
  with({});
  auto client = this->client(), watch = this->client();
  const std::string requests =
      wire({"SET", "k", "value"}) + wire({"MGET", "k", "none"}) + wire({"GET", "k"});
  const std::string replies = "+OK\r\n*2\r\n$5\r\nvalue\r\n$-1\r\n$5\r\nvalue\r\n";
  for (std::size_t at = 1; at < requests.size(); ++at) {
    client.send(requests.substr(0, at));
    // Something that comes behind it has been served: so the proxy has most likely read the first
    // piece.
    ASSERT_EQ(watch.command({"PING"}).as_text(), "PONG");
    client.send(requests.substr(at));
    std::string got;
    while (got.size() < replies.size()) got += client.read_raw(replies.size() - got.size());
    ASSERT_EQ(got, replies) << at;
  }
}

TEST_F(Clients, WhoHasClosedItsSideGetsItsReplies) {
  with({});
  auto client = this->client();
  std::string requests;
  for (int i = 0; i < 3000; ++i) requests += wire({"SET", fmt::format("half:{}", i), "x"});
  client.send(requests);
  client.finish_sending();
  std::string got;
  for (;;) {
    const auto more = client.read_raw();
    if (more.empty()) break;
    got += more;
  }
  EXPECT_EQ(got.size(), 3000U * 5);
}

TEST_F(Clients, OneWhoNeverReadsIsBoundedAndTheOthersAreServed) {
  auto& proxy = with({"client_output_limit: 4mb"});
  auto writer = client();
  ASSERT_EQ(writer.command({"SET", "big", std::string(mib, 'b')}).as_text(), "OK");
  auto greedy = client();
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += wire({"GET", "big"});
  greedy.send(requests);
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy).client_paused > 0; }));
  expect_service();
  std::this_thread::sleep_for(50ms);
  expect_service();
  EXPECT_LT(memory(), static_cast<std::int64_t>(64 * mib));
  // And when it reads, it gets all that it asked for, in time.
  for (int i = 0; i < 200; ++i) ASSERT_EQ(greedy.read().as_text().size(), mib) << i;
  EXPECT_EQ(greedy.command({"PING"}).as_text(), "PONG");
  EXPECT_EQ(totals(proxy).client_overflows, 0);
}

TEST_F(Clients, OneWhoNeverReadsWhatItLuredOutIsClosed) {
  auto& proxy = with({"client_output_limit: 1mb"});
  auto greedy = client();
  ASSERT_EQ(greedy.command({"SET", "big", std::string(mib, 'b')}).as_text(), "OK");
  // Short replies first, so that it is expected to take as little behind them.
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += wire({"STRLEN", "big"});
  greedy.send(requests);
  for (int i = 0; i < 200; ++i) greedy.read();
  requests.clear();
  for (int i = 0; i < 300; ++i) requests += wire({"GET", "big"});
  greedy.send(requests);
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy).client_overflows == 1; }));
  expect_service();
  ASSERT_TRUE(RandomLoad::await([&] { return memory() < static_cast<std::int64_t>(8 * mib); }));
}

TEST_F(Clients, WhoAsksMoreThanAServerTakesWaits) {
  auto& proxy = with({});
  const auto key = proxy.key_at(0);
  first_.stop();
  auto client = this->client();
  const std::string value(mib, 'v');
  std::thread writer{[&] {  // it is not read from, so it may have to wait
    for (int i = 0; i < 100; ++i) client.send(wire({"SET", key, value}));
  }};
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy).client_paused > 0; }));
  std::this_thread::sleep_for(50ms);
  auto other = this->client();
  EXPECT_TRUE(other.command({"GET", proxy.key_at(1)}).is_null());
  EXPECT_LT(memory(), static_cast<std::int64_t>(32 * mib));
  first_.cont();
  writer.join();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.read().as_text(), "OK") << i;
}

/// Sends one request again and again, with each call once at most, as far as the peer takes it.
class Sender {
 public:
  explicit Sender(std::uint16_t port) : connection_(connect_to(port)) {}

  void send(std::string_view request) {
    for (std::size_t all = 0; all < request.size();) {
      const auto left = request.substr(at_);
      const auto sent =
          ::send(connection_.number(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent <= 0) return;
      all += static_cast<std::size_t>(sent);
      at_ = (at_ + static_cast<std::size_t>(sent)) % request.size();
    }
  }

 private:
  Descriptor connection_;
  std::size_t at_ = 0;  // in the request
};

/// Who wants no replies waits for a server that stands still as well.
TEST(WithoutReplies, AServerThatStandsStillTakesNoMemory) {
  VirtualClock clock;
  Memcached first, second;
  ProxyUnderTest proxy{PoolLines{memcached_pool({first.port(), second.port()})}, {}, clock};
  const auto key = proxy.key_at(0);
  const auto set =
      fmt::format("set {} 0 0 500000 noreply\r\n{}\r\n", key, std::string(500'000, 'x'));
  const auto set_other = fmt::format("set {} 0 0 1\r\nx\r\n", proxy.key_at(1));
  PlainClient other{proxy.port()};
  const auto expect_service = [&] {
    other.send(set_other);
    ASSERT_EQ(read_bytes(other, 8), "STORED\r\n");
  };
  first.stop();
  std::deque<Sender> senders;
  for (int i = 0; i < 10; ++i) senders.emplace_back(proxy.port());
  for (int seconds = 0; seconds < 60; ++seconds) {
    for (int i = 0; i < 5; ++i) {
      for (auto& sender : senders) sender.send(set);
      expect_service();
    }
    proxy.pass(1s);
    ASSERT_LT(proxy.proxy().memory(), static_cast<std::int64_t>(32 * mib));
  }
  EXPECT_GT(totals(proxy).client_paused, 0);
  senders.clear();
  first.cont();
  const auto later = proxy.key_at(0, "later");
  PlainClient after{proxy.port()};
  after.send(fmt::format("set {} 0 0 1\r\ny\r\nget {}\r\n", later, later));
  const auto replies = fmt::format("STORED\r\nVALUE {} 0 1\r\ny\r\nEND\r\n", later);
  EXPECT_EQ(read_bytes(after, replies.size()), replies);
}

TEST_F(Clients, MemoryHasALimitForAll) {
  auto& proxy = with({"client_output_limit: 64mb"}, {"memory_limit: 32mb"});
  const auto greedy = ten_greedy_clients();
  std::int64_t most = 0;
  // What was under way is more than the limit: some are closed, the greediest first, and the rest
  // fits.
  ASSERT_TRUE(RandomLoad::await([&] {
    most = std::max(most, memory());
    return totals(proxy).client_evictions > 0 && memory() < static_cast<std::int64_t>(32 * mib);
  }));
  expect_service();
  EXPECT_LT(most, static_cast<std::int64_t>(160 * mib));
  EXPECT_LT(totals(proxy).client_evictions, 11);
}

TEST_F(Clients, WhoAskForMoreThanMemoryHoldsDelayTheOthersByNoMoreThanThat) {
  auto& proxy = with({"client_output_limit: 64mb"}, {"memory_limit: 32mb"});
  auto other = client();
  const auto greedy = ten_greedy_clients();
  // All of them have been read from: so much as they may order has been ordered.
  ASSERT_TRUE(RandomLoad::await(
      [&] { return totals(proxy).requests >= 400 || totals(proxy).client_paused >= 10; }));
  const auto replied = [&] {
    return totals(proxy, 0).response_bytes + totals(proxy, 1).response_bytes;
  };
  for (int i = 0; i < 20; ++i) {
    const auto before = replied();
    ASSERT_EQ(other.command({"STRLEN", "big"}).as_integer(), static_cast<std::int64_t>(mib));
    ASSERT_LT(replied() - before, static_cast<std::int64_t>(128 * mib)) << i;
  }
}

TEST_F(Clients, WhoHoldsNothingIsServedWhileMemoryIsFull) {
  VirtualClock stopped;  // no second passes after which one that stands still would be closed
  auto& proxy = with({}, {"memory_limit: 10mb"}, stopped);
  const std::string begun =
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + std::string(5 * mib, 'x');
  std::deque<PlainClient> slow;
  std::vector<std::jthread> senders;
  for (int i = 0; i < 2; ++i)
    senders.emplace_back([&begun, &one = slow.emplace_back(proxy.port())] {
      try {
        one.send(begun);
      } catch (const std::system_error&) {  // it is closed in the middle
      }
    });
  const std::shared_ptr<void> at_the_end{nullptr, [&](void*) { proxy_.reset(); }};
  ASSERT_TRUE(RandomLoad::await([&] { return memory() > static_cast<std::int64_t>(10 * mib); }));
  expect_service();
  EXPECT_GT(memory(), static_cast<std::int64_t>(10 * mib));
  EXPECT_EQ(totals(proxy).client_evictions, 0);
}

TEST_F(Clients, MemoryIsFreeAgainWhenARequestIsNeverFinished) {
  auto& proxy = with({}, {"memory_limit: 8mb"});
  auto slow = client();
  std::thread sender{[&] {
    try {
      slow.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n" + std::string(50 * mib, 'x'));
    } catch (const std::system_error&) {  // it is closed in the middle
    }
  }};
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy).client_evictions == 1; }));
  sender.join();
  ASSERT_TRUE(RandomLoad::await([&] { return memory() < static_cast<std::int64_t>(mib); }));
  expect_service();
}

TEST_F(Clients, RequestsHaveLimits) {
  with({"request_size_limit: 64kb", "request_words_limit: 100"});
  const auto refuses = [&](const std::string& request) {
    const auto said = talk(proxy_->port(), wire({"SET", "k", "v"}) + request + wire({"PING"}), "");
    EXPECT_TRUE(said.closed);
    EXPECT_TRUE(said.bytes.starts_with("+OK\r\n-ERR Protocol error")) << said.bytes;
    EXPECT_FALSE(said.bytes.ends_with("+PONG\r\n"));
  };
  refuses(wire({"SET", "k", std::string(70'000, 'x')}));
  refuses("*101\r\n");
  refuses("*1\r\n$70000\r\n");
  expect_service();
}

TEST_F(Clients, AreCounted) {
  auto& proxy = with({"client_connections: 5"}, {"workers: 3"});
  std::vector<PlainClient> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(client());
    ASSERT_EQ(clients.back().command({"PING"}).as_text(), "PONG");
  }
  EXPECT_TRUE(talk(proxy.port(), "", "").closed);
  EXPECT_EQ(totals(proxy).client_refused, 1);
  clients.pop_back();
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy).client_connections == 4; }));
  EXPECT_EQ(client().command({"PING"}).as_text(), "PONG");
}

/// Whether the kernel's timer of the connections that clients have to this port is that of
/// keep-alive (02 in the sixth column of /proc/net/tcp).
bool is_kept_alive(std::uint16_t port) {
  const auto local = fmt::format(":{:04X} ", port);
  std::ifstream table{"/proc/net/tcp"};
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find(local);
    if (at == line.npos || at > 20) continue;  // the far side's port
    const auto state = line.substr(at + local.size() + 14, 2),
               timer = line.substr(at + local.size() + 35, 2);
    if (state == "01") return timer == "02";
  }
  return false;
}

TEST_F(Clients, AreKeptAliveWhereTheSettingSaysSo) {
  for (const bool wanted : {false, true}) {
    auto& proxy = with({fmt::format("tcpkeepalive: {}", wanted)});
    auto one = client();
    ASSERT_EQ(one.command({"PING"}).as_text(), "PONG");
    EXPECT_TRUE(RandomLoad::await([&] { return is_kept_alive(proxy.port()) == wanted; })) << wanted;
  }
}

TEST_F(Clients, WhoIsSilentTooLongIsClosedButNotWhileItWaits) {
  VirtualClock clock;
  auto& proxy = with({"client_idle_timeout: 300ms"}, {}, clock);
  const std::shared_ptr<void> at_the_end{nullptr, [&](void*) { proxy_.reset(); }};
  const auto key = proxy.key_at(0);
  auto silent = client(), waiting = client();
  ASSERT_EQ(silent.command({"PING"}).as_text(), "PONG");
  first_.stop();
  waiting.send(wire({"GET", key}));
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy, 0).out_queue == 1; }));
  EXPECT_TRUE(is_closed_as_time_passes(silent, proxy));
  first_.cont();
  EXPECT_TRUE(waiting.read().is_null());
  EXPECT_EQ(waiting.command({"PING"}).as_text(), "PONG");
}

std::size_t resident() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Raises the limit of open files as far as it goes: how many there may be.
std::size_t open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TEST_F(Clients, TenThousandIdleOnesAndABurst) {
  // Both ends of each connection are ours.
  const auto many = std::min<std::size_t>(10'000, (open_files() - 200) / 2);
  auto& proxy = with({"backlog: 4096"});
  auto writer = client();
  const std::string value(1024, 'v');
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(writer.command({"SET", fmt::format("k:{}", i), value}).as_text(), "OK");
  std::vector<PlainClient> clients;
  clients.reserve(many);
  ::malloc_trim(0);
  const auto base = resident();
  while (clients.size() < many) clients.push_back(client());
  ASSERT_TRUE(RandomLoad::await(
      [&] { return totals(proxy).client_connections == static_cast<std::int64_t>(many) + 1; }));
  const auto idle = (resident() - base) / many - sizeof(PlainClient);  // without the test's own end
  std::cout << many << " idle clients: " << idle << " bytes each\n";
  expect_service();

  const std::size_t burst = std::min<std::size_t>(1000, many);
  std::string requests;
  for (int i = 0; i < 64; ++i) requests += wire({"GET", fmt::format("k:{}", i)});
  const auto before = resident();
  for (std::size_t i = 0; i < burst; ++i) clients[i].send(requests);
  const auto reply = value.size() + 9;
  for (std::size_t i = 0; i < burst; ++i)
    for (std::size_t got = 0; got < 64 * reply;) got += clients[i].read_raw().size();
  std::cout << "a burst of " << burst << ": " << (resident() - before) / 1024 << " KiB more\n";
  const auto begun = std::chrono::steady_clock::now();
  if (!is_sanitized) {
    EXPECT_LE(idle, 384U);
    EXPECT_TRUE(RandomLoad::await([&] { return resident() < before + burst * 512; }));
  }
  std::cout << "forgotten within "
            << std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now() - begun)
                   .count()
            << " ms\n";
}

}  // namespace
}  // namespace sluice::test
