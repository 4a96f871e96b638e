// Folders of the engine's own that have lost a part, or that its user may not use: what was lost is
// noticed, and the message says what to do.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/embedded_store.hpp"
#include "engine/log/dump.hpp"
#include "engine/log/file.hpp"
#include "support/collected_log.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using sluice::test::Process;
using sluice::test::TempDir;

constexpr const char* manifest_path = "appendonlydir/appendonly.aof.manifest";

std::string bytes_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// A base and two increments: the second rewrite finds no room for its base.
int write_into(const std::string& folder) {
  const auto store = open_embedded({.path = folder, .fsync = Fsync::never});
  store->run({"SET", "a", std::string(600, 'a')}).get();
  store->rewrite();
  store->run({"SET", "b", "2"}).get();
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{400, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &small);
  try {
    store->rewrite();
    return 1;
  } catch (const std::system_error&) {
    store->run({"EVAL", "redis.call('SET', 'c', '3') redis.call('SET', 'd', '4')", "0"}).get();
    store->run({"SET", "e", "5"}).get();
    return 0;
  }
}
void fill_folder(const fs::path& folder) {
  Process writer{[&] { return write_into(folder.string()); }};
  ASSERT_EQ(writer.wait(), 0);
}

struct Look {
  std::optional<Errc> refused;
  std::string said;
  engine::test::Dump dump;
};
Look look_at(const fs::path& folder) {
  const sluice::test::CollectedLog quiet;
  Look look;
  try {
    const auto store = open_embedded({.path = folder.string(), .fsync = Fsync::never});
    look.dump = engine::test::dump(*store);
  } catch (const Error& error) {
    look.refused = error.errc();
    look.said = error.message();
  }
  return look;
}

/// A copy of a folder.
struct Copy {
  explicit Copy(const fs::path& from) {
    fs::copy(from, folder.path(), fs::copy_options::recursive);
  }
  TempDir folder;
};

TEST(FolderDamage, E5_AFileThatIsCutAnywhereIsNoticed) {
  const TempDir whole;
  fill_folder(whole.path());
  const auto full = look_at(whole.path()).dump;
  ASSERT_EQ(full.size(), 5U);
  int looked = 0;
  for (const auto& entry : fs::directory_iterator{whole / "appendonlydir"}) {
    const auto name = entry.path().filename().string();
    const auto content = bytes_of(entry.path());
    for (std::size_t at = 0; at < content.size(); ++at) {
      if (at >= 50 && at % 16 != 0 && content[at - 1] != '\n') continue;
      const Copy copy{whole.path()};
      fs::resize_file(copy.folder / "appendonlydir" / name, at);
      const auto look = look_at(copy.folder.path());
      ++looked;
      // Of the last file an end is missing, as after a crash.
      if (name == "appendonly.aof.3.incr.aof")
        EXPECT_TRUE(!look.refused && look.dump.size() >= 2) << name << " " << at << look.said;
      else
        EXPECT_EQ(look.refused, Errc::corrupt) << name << " " << at << ", after " << looked;
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(looked, 200);
}

TEST(FolderDamage, E5_AFileThatTheListHasLostMayBeMovedAway) {
  const TempDir folder;
  fill_folder(folder.path());
  const auto list = bytes_of(folder / manifest_path);
  fs::resize_file(folder / manifest_path, list.find("file appendonly.aof.3.incr.aof"));
  EXPECT_EQ(look_at(folder.path()).refused, Errc::corrupt);
  fs::remove(folder / "appendonlydir/appendonly.aof.3.incr.aof");
  for (int opened = 1; opened <= 3; ++opened)  // what is appended makes a file larger than listed
    EXPECT_EQ(open_embedded({.path = folder.str()})->run({"INCR", "n"}).get().as_integer(), opened);
}

TEST(FolderDamage, E4_AFolderWithoutItsManifestIsCorruptAndTheAdviceBringsItBack) {
  const TempDir whole;
  fill_folder(whole.path());
  const auto full = look_at(whole.path()).dump;
  fs::remove(whole / manifest_path);
  const auto look = look_at(whole.path());
  EXPECT_EQ(look.refused, Errc::corrupt) << look.said;
  EXPECT_EQ(look.said.find((whole / manifest_path).string()), 0U) << look.said;
  EXPECT_EQ(look.said.find("start redis-server"), std::string::npos) << look.said;
  std::string lines;
  for (auto at = look.said.find("'file "); at != std::string::npos;
       at = look.said.find("'file ", at + 1))
    lines += look.said.substr(at + 1, look.said.find('\'', at + 1) - at - 1) + "\n";
  std::ofstream{whole / manifest_path} << lines;
  const auto again = look_at(whole.path());
  EXPECT_EQ(test::difference(again.dump, full), "") << again.said << lines;
}

TEST(FolderDamage, E6_AFileThatEveryUserCanWriteIsRefused) {
  const TempDir whole;
  fill_folder(whole.path());
  for (const auto* const name :
       {"sluice.lock", manifest_path, "appendonlydir/appendonly.aof.1.base.aof",
        "appendonlydir/appendonly.aof.3.incr.aof"})
    for (const mode_t mode : {0666U, 0622U, 0660U}) {
      const Copy copy{whole.path()};
      ASSERT_EQ(::chmod((copy.folder / name).c_str(), mode), 0);
      const auto look = look_at(copy.folder.path());
      if (mode == 0660) {
        EXPECT_FALSE(look.refused) << look.said;
        continue;
      }
      EXPECT_EQ(look.refused, Errc::bad_argument) << name << mode;
      EXPECT_NE(look.said.find("chmod o-w " + (copy.folder / name).string()), std::string::npos)
          << look.said;
    }
}

void expect_advice(const Look& look, const std::string& place, const std::string& advice) {
  EXPECT_EQ(look.refused, Errc::bad_argument) << look.said;
  EXPECT_NE(look.said.find(place), std::string::npos) << look.said;
  EXPECT_NE(look.said.find(advice), std::string::npos) << look.said;
  EXPECT_EQ(look.said.find("filesystem error"), std::string::npos) << look.said;
}

TEST(FolderDamage, AFolderInTheWayIsToBeMovedAway) {
  for (const auto* const name : {"sluice.lock", manifest_path}) {
    const TempDir folder;
    fs::create_directories(folder / name);
    expect_advice(look_at(folder.path()), (folder / name).string(), "move it out of the way");
  }
  const TempDir folder;
  expect_advice(look_at(folder / std::string(300, 'x')), "xxx", "name a shorter path");
}

TEST(FolderDamage, WhatTheUserMayNotReadIsNamedWithWhatToDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempDir above;
  const auto folder = above / "data";
  fs::create_directories(folder / "closed");
  fs::create_directories(above / "shut");
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(above.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder / "closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((above / "shut").c_str(), 0711), 0);
  Process other{[&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 2;
    expect_advice(look_at(folder), (folder / "closed").string(), "let the user of this process");
    const auto look = look_at(above / "shut/new");
    expect_advice(look, (above / "shut").string(), "let the user of this process");
    EXPECT_EQ(look.said.find("does not exist"), std::string::npos) << look.said;
    return testing::Test::HasFailure() ? 1 : 0;
  }};
  EXPECT_EQ(other.wait(), 0);
}

TEST(FolderDamage, EachErrorOfADiskSaysWhatToDo) {
  for (const int number :
       {EACCES, EPERM, EROFS, ENAMETOOLONG, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, EIO}) {
    const auto error =
        error_of_disk(std::system_error{number, std::generic_category(), "cannot open /x"});
    EXPECT_NE(error.message().find("; "), std::string::npos) << error.message();
    const bool is_path =
        number == EACCES || number == EPERM || number == EROFS || number == ENAMETOOLONG;
    EXPECT_EQ(error.errc() == Errc::bad_argument, is_path) << error.message();
    EXPECT_EQ(error.errc() == Errc::corrupt, number == EIO) << error.message();
  }
}

}  // namespace
}  // namespace sluice::engine
