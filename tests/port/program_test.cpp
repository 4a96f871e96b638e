// The program itself: what it has acknowledged is in its folder, however it ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "engine/embedded/opened_engine.hpp"
#include "engine/embedded_store.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/listening.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

class Program {
 public:
  explicit Program(const std::string& fsync) : fsync_(fsync) { start(); }

  void start() {
    process_.emplace(arguments(port_), ProcessOptions{.output = directory_ / "log"});
    ASSERT_TRUE(comes_to_listen(*process_, port_)) << log();
  }
  std::vector<std::string> arguments(std::uint16_t port) const {
    return {built_path("sluice-engine"), "serve",
            data(),                      "--listen",
            fmt::format("127.0.0.1:{}", port), "--io-threads", "2", "--fsync", fsync_};
  }
  std::uint16_t port() const noexcept { return port_; }
  std::string data() const { return (directory_ / "data").string(); }
  std::string log() const { return text_of(directory_ / "log"); }
  Process& process() { return *process_; }
  const TempDir& directory() const { return directory_; }

 private:
  TempDir directory_;
  std::string fsync_;
  std::uint16_t port_ = free_port();
  std::optional<Process> process_;
};

/// Clients that write all the time, each to keys of its own, and note what was acknowledged.
class Ledger {
 public:
  explicit Ledger(std::uint16_t port) : lines_(6) {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      threads_.emplace_back([this, port, i] { write(port, i); });
  }
  ~Ledger() { join(); }

  std::int64_t acknowledged() const { return all_; }
  void join() {
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  /// REQUIRES: all have ended.
  void expect_kept(PlainClient& server) const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto get = [&](const std::string& key) {
        return std::atoll(server.command({"GET", key}).as_text().c_str());
      };
      const auto known = lines_[i].load();
      const auto number = get(fmt::format("n{}", i));
      EXPECT_GE(number, known) << "acknowledged and lost";
      EXPECT_LE(number, known + 1);
      EXPECT_EQ(server.command({"LLEN", fmt::format("l{}", i)}).as_integer(), number)
          << "half of a transaction";
      EXPECT_EQ(get(fmt::format("s{}", i)), number) << "half of a transaction";
    }
  }

 private:
  void write(std::uint16_t port, std::size_t i) {
    try {
      PlainClient client{port};
      for (std::int64_t n = 1;; ++n) {
        client.send(request("MULTI") + request(fmt::format("RPUSH l{} {}", i, n)));
        client.send(request(fmt::format("SET s{} {}", i, n)) + request(fmt::format("INCR n{}", i)) +
                    request("EXEC"));
        for (int left = 4; left > 0; --left) client.read();
        if (client.read().as_items().size() != 3) return;
        lines_[i] = n;
        ++all_;
      }
    } catch (const std::system_error&) {  // it was killed
    }
  }

  std::vector<std::atomic<std::int64_t>> lines_;
  std::atomic<std::int64_t> all_{0};
  std::vector<std::thread> threads_;
};

class EngineProgram : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Fsync, EngineProgram, testing::Values("always", "everysec", "never"),
                         [](const auto& mode) { return mode.param; });

TEST_P(EngineProgram, LosesNothingThatItHasAcknowledged) {
  for (const int signal : {SIGKILL, SIGKILL, SIGTERM}) {
    Program program{GetParam()};
    Ledger ledger{program.port()};
    ASSERT_TRUE(comes_true([&] { return ledger.acknowledged() > 300; })) << program.log();
    program.process().signal(signal);
    EXPECT_EQ(program.process().wait(), signal == SIGTERM ? 0 : 128 + signal) << program.log();
    ledger.join();
    program.start();
    PlainClient server{program.port()};
    ledger.expect_kept(server);
    EXPECT_EQ(ask(server, "DBSIZE"), ":18");
  }
}

TEST(PortProgram, GoesOnAfterItStoodStill) {
  Program program{"everysec"};
  PlainClient client{program.port()}, waiting{program.port()};
  waiting.send(request("BLPOP l 0.2"));
  EXPECT_EQ(ask(client, "SET k v"), "+OK");
  program.process().stop();
  client.send(request("GET k") + request("RPUSH l x"));
  EXPECT_FALSE(client.read_for(300ms));
  program.process().cont();
  EXPECT_EQ(text_of(client.read()), "$1 v");
  EXPECT_EQ(text_of(client.read()).front(), ':');
  const auto popped = text_of(waiting.read());
  EXPECT_TRUE(popped == "_" || popped == "*2 $1 l $1 x") << popped;
}

TEST(PortProgram, AFolderHasOneOwner) {
  Program program{"everysec"};
  const auto pid = std::to_string(program.process().pid());
  const auto output = program.directory() / "second";
  Process second{program.arguments(free_port()), {.output = output}};
  EXPECT_NE(second.wait(), 0);
  EXPECT_TRUE(text_of(output).contains(pid)) << text_of(output);
  try {
    engine::open_embedded({.path = program.data()});
    FAIL() << "opened twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::in_use);
    EXPECT_TRUE(std::string{error.what()}.contains(pid)) << error.what();
  }
  PlainClient client{program.port()};
  EXPECT_EQ(ask(client, "SET k v"), "+OK");
  client.send(request("SHUTDOWN"));
  EXPECT_EQ(program.process().wait(), 0);
  {
    const auto store = engine::open_embedded({.path = program.data()});
    EXPECT_EQ(store->run({"GET", "k"}).get(), Value::bulk_string("v"));
    const auto beside = program.directory() / "beside";
    Process late{program.arguments(program.port()), {.output = beside}};
    EXPECT_NE(late.wait(), 0);
    EXPECT_TRUE(text_of(beside).contains(std::to_string(::getpid()))) << text_of(beside);
  }
  program.start();
  PlainClient again{program.port()};
  EXPECT_EQ(ask(again, "GET k"), "$1 v");
}

}  // namespace
}  // namespace sluice::test
