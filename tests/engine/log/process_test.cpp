// Real files and real processes: the lock of a folder, SIGKILL at any moment, a disk limit of the
// kernel.
#include "support/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include "engine/embedded_store.hpp"
#include "support/temp_dir.hpp"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using sluice::test::Process;
using sluice::test::TempDir;

/// Numbers from a child to its parent.
class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_.data()) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  }
  ~Pipe() {
    ::close(ends_[0]);
    close_writing();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void write(int number) {
    ASSERT_EQ(::write(ends_[1], &number, sizeof number), ssize_t{sizeof number});
  }
  void close_writing() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  /// Empty: the other side is closed.
  std::optional<int> read() {
    int number = 0;
    if (::read(ends_[0], &number, sizeof number) != ssize_t{sizeof number}) return std::nullopt;
    return number;
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(Folder, IsLockedAgainstAnotherProcess) {
  const TempDir folder;
  Pipe opened;
  Process other{[&] {
    const auto store = open_embedded({.path = folder.str()});
    opened.write(1);
    for (;;) ::pause();
    return 0;
  }};
  ASSERT_EQ(opened.read(), 1);
  try {
    open_embedded({.path = folder.str()});
    FAIL() << "opened twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::in_use);
    EXPECT_NE(error.message().find(std::to_string(other.pid())), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find(folder.str()), std::string::npos) << error.message();
  }
  other.kill();
  EXPECT_EQ(open_embedded({.path = folder.str()})->run({"PING"}).get(),
            Value::simple_string("PONG"));
}

TEST(Folder, IsLockedAgainstASecondStoreOfThisProcess) {
  const TempDir folder;
  const auto store = open_embedded({.path = folder.str()});
  try {
    open_embedded({.path = folder.str()});
    FAIL() << "opened twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::in_use);
    EXPECT_NE(error.message().find("this process"), std::string::npos) << error.message();
  }
}

TEST(Folder, OfEachStoreIsItsOwn) {
  const TempDir one;
  const TempDir two;
  const auto first = open_embedded({.path = one.str()});
  const auto second = open_embedded({.path = two.str()});
  first->run({"SET", "k", "1"}).get();
  second->run({"SET", "k", "2"}).get();
  EXPECT_EQ(first->run({"GET", "k"}).get(), Value::bulk_string("1"));
  EXPECT_EQ(second->describe(), "embedded:" + two.str());
}

TEST(Folder, IsMadeForItsUserAlone) {
  const TempDir above;
  const auto path = above.str() + "/data/";
  open_embedded({.path = path})->run({"SET", "k", "v"}).get();
  const auto mode = [&](const std::string& name) {
    struct stat status {};
    EXPECT_EQ(::stat((above.str() + "/data" + name).c_str(), &status), 0) << name;
    return status.st_mode & 0777U;
  };
  EXPECT_EQ(mode(""), 0700U);
  EXPECT_EQ(mode("/appendonlydir"), 0700U);
  EXPECT_EQ(mode("/sluice.lock"), 0600U);
  EXPECT_EQ(mode("/appendonlydir/appendonly.aof.1.incr.aof"), 0600U);
  EXPECT_EQ(mode("/appendonlydir/appendonly.aof.manifest"), 0600U);
}

TEST(Folder, NeedsAParentAndIsNoFile) {
  const TempDir above;
  const auto file = above.str() + "/file";
  std::ofstream{file} << "x";
  for (const auto& path : {above.str() + "/none/data", file}) {
    try {
      open_embedded({.path = path});
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument) << error.what();
      EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
    }
  }
}

TEST(Folder, KeepsWhatWasAcknowledgedWhenTheProcessIsKilled) {
  const TempDir folder;
  int acknowledged = 0;
  for (int round = 0; round < 8; ++round) {
    Pipe ledger;
    Process writer{[&] {
      const auto store = open_embedded({.path = folder.str(), .rewrite_above_bytes = 20'000});
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
          for (;;) {
            auto asked = store->run(
                {"EVAL", "redis.call('RPUSH', KEYS[2], 'x') return redis.call('INCR', KEYS[1])",
                 "2", "{a}n", "{a}list"});
            ledger.write(static_cast<int>(asked.get().as_integer()));
          }
        });
      for (auto& thread : threads) thread.join();
      return 0;
    }};
    ledger.close_writing();
    for (int i = 0; i < 40 + 30 * round; ++i)
      acknowledged = std::max(acknowledged, ledger.read().value_or(0));
    writer.kill();
    while (const auto late = ledger.read()) acknowledged = std::max(acknowledged, *late);
    const auto store = open_embedded({.path = folder.str()});
    const auto found = store->run({"GET", "{a}n"}).get().as_integer();
    EXPECT_GE(found, acknowledged);
    EXPECT_EQ(store->run({"LLEN", "{a}list"}).get().as_integer(), found)
        << "a script is whole or not there";
  }
  EXPECT_GT(acknowledged, 1000);
}

TEST(Folder, ThatIsFullLosesNothingAcknowledged) {
  const TempDir folder;
  Pipe ledger;
  Process writer{[&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{8192, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto store = open_embedded({.path = folder.str()});
    try {
      for (int i = 0; i < 10'000; ++i) {
        const auto key = "k" + std::to_string(i);
        store->run({"SET", key, "value"}).get();
        ledger.write(i);
      }
      return 1;
    } catch (const Error& error) {
      if (error.errc() != Errc::out_of_space || error.effect() != Effect::unknown) return 2;
    }
    if (store->run({"GET", "k0"}).get() != Value::bulk_string("value")) return 3;
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &large);
    try {
      store->run({"SET", "early", "1"}).get();
      return 4;
    } catch (const Error& error) {
      if (error.effect() != Effect::none) return 5;
    }
    store->rewrite();
    store->run({"SET", "late", "1"}).get();
    return 0;
  }};
  ledger.close_writing();
  EXPECT_EQ(writer.wait(), 0);
  const auto store = open_embedded({.path = folder.str()});
  int count = 0;
  while (const auto acknowledged = ledger.read()) {
    ++count;
    EXPECT_EQ(store->run({"EXISTS", "k" + std::to_string(*acknowledged)}).get(), Value::integer(1));
  }
  EXPECT_GT(count, 50);
  EXPECT_EQ(store->run({"EXISTS", "late", "early"}).get(), Value::integer(1));
}

}  // namespace
}  // namespace sluice::engine
