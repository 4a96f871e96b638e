// Real files and real processes: the lock of a folder, SIGKILL at any moment, a disk limit of the
// kernel.
#include "support/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
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

TEST(Folder, E7_IsLockedThoughItsLockFileWasRemoved) {
  const TempDir folder;
  const auto lock = folder / "sluice.lock";
  auto store = open_embedded({.path = folder.str()});
  for (const bool by_another : {false, true}) {
    SCOPED_TRACE(by_another);
    std::filesystem::remove(lock);
    const auto look = [&] {
      try {
        open_embedded({.path = folder.str()})->run({"SET", "k", "v"}).get();
        return 1;
      } catch (const Error& error) {
        const bool tells = error.message().find("fuser -v " + folder.str()) != std::string::npos;
        return error.errc() == Errc::in_use && tells && !std::filesystem::exists(lock) ? 0 : 2;
      }
    };
    EXPECT_EQ(by_another ? Process{look}.wait() : look(), 0);
  }
  store.reset();
  open_embedded({.path = folder.str()});
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

/// What opening the folder says is wrong.
std::string refusal_of(const TempDir& folder) {
  try {
    open_embedded({.path = folder.str()});
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument) << error.message();
    return error.message();
  }
  return "it was opened";
}

TEST(FolderAttacks, N01_TheLogTakesNoStandardDescriptor) {
  const TempDir folder;
  Process writer{[&] {
    for (const int number : {0, 1, 2}) ::close(number);
    const auto store = open_embedded({.path = folder.str()});
    for (const int number : {0, 1, 2})
      if (::write(number, "x", 1) >= 0) return 1;
    store->run({"SET", "k", "v"}).get();
    return 0;
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(open_embedded({.path = folder.str()})->run({"GET", "k"}).get().as_text(), "v");
}

TEST(FolderAttacks, N08_LinksAreNotFollowed) {
  const TempDir other;
  const std::string victim = other / "victim";
  std::ofstream{victim} << "precious";
  const auto is_whole = [&] {
    std::ifstream file{victim};
    std::string text;
    return std::getline(file, text) && text == "precious";
  };
  for (const char* const name : {"sluice.lock", "appendonlydir"}) {
    const TempDir folder;
    std::filesystem::create_symlink(std::string{name} == "sluice.lock" ? victim : other.str(),
                                    folder / name);
    const auto said = refusal_of(folder);
    EXPECT_NE(said.find(name), std::string::npos) << said;
    EXPECT_NE(said.find("symbolic link"), std::string::npos) << said;
    EXPECT_TRUE(is_whole());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{other.path()}, {}), 1);
  }
  for (const char* const name :
       {"appendonly.aof.1.incr.aof", "temp-appendonly.aof.manifest", "appendonly.aof.manifest"}) {
    const TempDir folder;
    std::filesystem::create_directory(folder / "appendonlydir");
    std::filesystem::create_symlink(victim, folder / "appendonlydir" / name);
    const auto said = refusal_of(folder);
    EXPECT_NE(said.find(name), std::string::npos) << said;
    EXPECT_NE(said.find("symbolic link"), std::string::npos) << said;
    EXPECT_TRUE(is_whole()) << name;
  }
}

TEST(FolderAttacks, N08_AFolderThatItsUserNamesMayBeALink) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "data");
  std::filesystem::create_directory_symlink(folder / "data", folder / "link");
  open_embedded({.path = folder / "link"})->run({"SET", "k", "v"}).get();
  EXPECT_EQ(open_embedded({.path = folder / "data"})->run({"GET", "k"}).get().as_text(), "v");
}

TEST(FolderAttacks, N08_WhatEveryUserCanWriteIsRefused) {
  for (const char* const name : {"", "appendonlydir"}) {
    const TempDir folder;
    open_embedded({.path = folder.str()});
    for (const mode_t mode : {0777U, 0707U, 01777U}) {
      ASSERT_EQ(::chmod((folder / name).c_str(), mode), 0);
      EXPECT_NE(refusal_of(folder).find("chmod o-w"), std::string::npos) << name << mode;
    }
    ASSERT_EQ(::chmod((folder / name).c_str(), 0770), 0);
    EXPECT_EQ(refusal_of(folder), "it was opened") << "its group was chosen";
  }
}

TEST(FolderAttacks, N08_WhatIsAnotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  for (const char* const name : {"", "appendonlydir", "sluice.lock"}) {
    const TempDir folder;
    open_embedded({.path = folder.str()});
    ASSERT_EQ(::chown((folder / name).c_str(), 65534, 65534), 0);
    EXPECT_NE(refusal_of(folder).find("belongs to the user with the id 65534"), std::string::npos)
        << name;
    ASSERT_EQ(::chown((folder / name).c_str(), 0, 0), 0);
  }
}

TEST(FolderAttacks, N08_ALockThatIsNoFileIsRefused) {
  const TempDir folder;
  ASSERT_EQ(::mkfifo((folder / "sluice.lock").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder).find("is no file"), std::string::npos);
}

/// What a program does with a process of its own while it has a folder open.
enum class Child { forked, spawned, daemon };
/// How it is done with the folder then.
enum class End { close, exit, kill };

/// Starts a child that lives on and does nothing; its pid is written.
void start(Child how, Pipe& said) {
  char program[] = "sleep";
  char seconds[] = "60";
  char* const arguments[] = {program, seconds, nullptr};
  pid_t child = -1;
  if (how == Child::spawned) {
    EXPECT_EQ(::posix_spawnp(&child, program, nullptr, nullptr, arguments, environ), 0);
    return said.write(child);
  }
  if (::fork() != 0) return;
  if (how == Child::daemon) ::setsid();
  said.write(::getpid());
  for (;;) ::pause();
}

TEST(FolderAndChildren, CO07_AChildDoesNotKeepTheFolder) {
  for (const auto how : {Child::forked, Child::spawned, Child::daemon})
    for (const auto end : {End::close, End::exit, End::kill}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(how) << static_cast<int>(end));
      const TempDir folder;
      Pipe said;
      Pipe done;
      Process owner{[&]() -> int {
        auto store = open_embedded({.path = folder.str()});
        store->run({"INCR", "n"}).get();
        start(how, said);
        if (end == End::close) store.reset();
        done.write(0);
        if (end != End::exit) ::pause();
        ::_exit(0);
      }};
      const auto child = said.read();
      ASSERT_TRUE(child);
      EXPECT_EQ(done.read(), 0);
      if (end == End::exit) owner.wait();
      if (end == End::kill) owner.kill();
      try {
        EXPECT_EQ(open_embedded({.path = folder.str()})->run({"INCR", "n"}).get().as_integer(), 2);
      } catch (const Error& error) {
        ADD_FAILURE() << error.message();
      }
      ::kill(*child, SIGKILL);
    }
}

TEST(FolderAndChildren, CO07_ADaemonOpensTheFolderThatItsParentHad) {
  const TempDir folder;
  Pipe said;
  Process parent{[&] {
    auto store = open_embedded({.path = folder.str()});
    store->run({"INCR", "n"}).get();
    if (::fork() != 0) {
      store.reset();
      return 0;
    }
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < end) try {  // until its parent has let go
        said.write(static_cast<int>(
            open_embedded({.path = folder.str()})->run({"INCR", "n"}).get().as_integer()));
        break;
      } catch (const Error& error) {
        if (error.errc() != Errc::in_use) break;
      }
    ::_exit(0);
  }};
  said.close_writing();
  EXPECT_EQ(said.read(), 2);
}

TEST(FolderAndChildren, CO07_TheFolderOfALivingParentStaysLocked) {
  const TempDir folder;
  const auto store = open_embedded({.path = folder.str()});
  Process child{[&] {
    try {
      open_embedded({.path = folder.str()});
      return 1;
    } catch (const Error& error) {
      return error.errc() == Errc::in_use ? 0 : 2;
    }
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_THROW(open_embedded({.path = folder.str()}), Error);
  store->run({"SET", "k", "v"}).get();
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
