// Locks over HTTP at several processes of the service, and by curl.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "server/curl.hpp"
#include "server/served.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using test::Served;
using test::text_of;

class ServedTools : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      served_.push_back(std::make_unique<Served>(
          folder_, i,
          std::vector<std::string>{"--store", redis_.url(), "--orders",
                                   "sqlite:" + (folder_ / "orders.db").string(), "--no-sales",
                                   "--local-operator"}));
      ASSERT_TRUE(served_.back()->begins()) << served_.back()->output();
    }
  }

  test::Answer acquire(int at, std::string_view key, std::string_view body = {}) const {
    return test::ask(port(at), "POST", "/v1/locks/stock", {{"Idempotency-Key", key}}, body);
  }
  test::Answer release(int at, const test::Answer& hold) const {
    return test::ask(port(at), "DELETE", "/v1/locks/stock/" + hold.text("owner"));
  }
  std::uint16_t port(int at) const { return served_[static_cast<std::size_t>(at)]->port(); }
  std::int64_t waiting(int at) const {
    return *test::ask(port(at), "GET", "/v1/locks/stock").json().find("waiting_here")->as_integer();
  }
  void begin_to_wait(http::RawClient& client, std::string_view key) const {
    client.send(
        fmt::format("POST /v1/locks/stock HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {}\r\n"
                    "Content-Length: 17\r\n\r\n{{\"wait_ms\":30000}}",
                    key));
  }
  /// The example, at one of the processes.
  test::Process by_curl(int at, std::vector<std::string> command, const std::string& output,
                        const std::string& lease_ms = "30000") const {
    std::vector<std::string> line{test::source_path("examples/lock_by_curl.sh"),
                                  fmt::format("http://127.0.0.1:{}", port(at)), "stock"};
    line.insert(line.end(), command.begin(), command.end());
    return test::Process{line,
                         {.directory = folder_.path(),
                          .environment = {{"LEASE_MS", lease_ms}},
                          .output = folder_ / output}};
  }

  test::TempDir folder_;
  test::RedisServer redis_;
  std::vector<std::unique_ptr<Served>> served_;
};

TEST_F(ServedTools, AHoldHangsOnNoProcess) {
  const auto ann = acquire(0, "ann");
  ASSERT_EQ(ann.status, 201) << ann.body;
  served_[0]->process().kill();
  EXPECT_EQ(acquire(1, "bob").problem(), "held");
  EXPECT_EQ(acquire(1, "ann").text("owner"), ann.text("owner")) << "a repeat at another process";
  EXPECT_EQ(test::ask(port(1), "PUT", "/v1/locks/stock/" + ann.text("owner")).status, 200);
  EXPECT_EQ(release(1, ann).status, 204);
  EXPECT_EQ(acquire(1, "bob").status, 201);
}

TEST_F(ServedTools, AReleaseAtOneProcessIsHeardAtTheOther) {
  const auto ann = acquire(0, "ann");
  http::RawClient bob{port(1)};
  begin_to_wait(bob, "bob");
  ASSERT_TRUE(test::comes_true([&] { return waiting(1) == 1; }));
  release(0, ann);
  EXPECT_NE(bob.answer().find("201 Created"), std::string::npos);
}

TEST_F(ServedTools, AProcessThatIsKilledWhileACallWaitsLeavesNothingBehind) {
  const auto ann = acquire(0, "ann");
  http::RawClient bob{port(1)};
  begin_to_wait(bob, "bob");
  ASSERT_TRUE(test::comes_true([&] { return waiting(1) == 1; }));
  served_[1]->process().kill();
  EXPECT_TRUE(bob.is_closed());
  release(0, ann);
  const auto carl = acquire(0, "carl");
  EXPECT_EQ(carl.status, 201) << carl.body;
}

TEST_F(ServedTools, AProcessThatIsStoppedEndsTheCallsThatWait) {
  acquire(0, "ann");
  http::RawClient bob{port(1)};
  begin_to_wait(bob, "bob");
  ASSERT_TRUE(test::comes_true([&] { return waiting(1) == 1; }));
  served_[1]->process().terminate();
  EXPECT_NE(bob.answer().find(" 503 "), std::string::npos);
  EXPECT_EQ(served_[1]->process().wait(), 0);
}

// Programs with the library queue, and those over HTTP come as Java programs do.
TEST_F(ServedTools, ProgramsWithTheLibraryAndThoseOverHttpTakeTurns) {
  const auto store = open(redis_.url());
  Mutex mutex{*store, "stock"};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto work = [&] {
    most = std::max(most.load(), ++inside);
    --inside;
  };
  std::vector<std::jthread> crew;
  for (int i = 0; i < 2; ++i)
    crew.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        const auto held = mutex.acquire().get();
        work();
      }
    });
  for (int at = 0; at < 2; ++at)
    crew.emplace_back([&, at] {
      for (int n = 0; n < 20; ++n) {
        test::Answer hold;
        do hold = acquire(at, fmt::format("{} {}", at, n), R"({"wait_ms":30000})");
        while (hold.problem() == "held");
        EXPECT_EQ(hold.status, 201) << hold.body;
        work();
        release(at, hold);
      }
    });
  crew.clear();
  EXPECT_EQ(most, 1);
}

TEST_F(ServedTools, AShellLocksByCurlAtAnyProcess) {
  std::ofstream{folder_ / "count"} << 0;
  const std::vector<std::string> add_one{"sh", "-c", "n=$(cat count); echo $((n + 1)) > count"};
  std::vector<test::Process> crew;
  for (int i = 0; i < 6; ++i) crew.push_back(by_curl(i % 2, add_one, fmt::format("by_curl{}", i)));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(crew[static_cast<std::size_t>(i)].wait(), 0)
        << text_of(folder_ / fmt::format("by_curl{}", i));
  EXPECT_EQ(text_of(folder_ / "count"), "6\n");
}

TEST_F(ServedTools, AShellHasTheExitCodeOfItsCommandAndItsToken) {
  auto shell = by_curl(0, {"sh", "-c", "echo token $SLUICE_TOKEN; exit 7"}, "by_curl");
  EXPECT_EQ(shell.wait(), 7);
  EXPECT_NE(text_of(folder_ / "by_curl").find("token 1"), std::string::npos);
  EXPECT_EQ(acquire(1, "ann").status, 201) << "it has released";
}

TEST_F(ServedTools, AShellThatLosesItsLockEndsItsCommand) {
  auto shell = by_curl(0, {"sleep", "1000"}, "by_curl", "1000");
  ASSERT_TRUE(test::comes_true([&] {
    const auto shown = test::ask(port(1), "GET", "/v1/locks/stock").json();
    return *shown.find("held")->as_bool();
  }));
  const auto store = open(redis_.url());
  Mutex{*store, "stock"}.force_release().get();
  EXPECT_EQ(shell.wait(), 75) << text_of(folder_ / "by_curl");
}

}  // namespace
}  // namespace sluice::server
