// Folders that a redis-server has left, sound and broken in every way: each opens equal to the
// server, or is refused with the name of a file and stays as it was to the last byte.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>

#include "engine/embedded_store.hpp"
#include "engine/log/dump.hpp"
#include "engine/log/whole_files.hpp"
#include "support/collected_log.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using sluice::test::PlainClient;
using sluice::test::Process;
using sluice::test::RedisServer;
using sluice::test::TempDir;
using test::Dump;
using test::read_file;
using test::write_file;
using Config = std::vector<std::string>;

constexpr const char* single = "appendonly.aof";
constexpr const char* unknown_command = "*3\r\n$7\r\nPFDEBUG\r\n$8\r\nENCODING\r\n$1\r\nh\r\n";

/// Everything below a folder: path, and its kind, mode and content.
using Tree = std::map<std::string, std::string>;

Tree tree_of(const fs::path& folder) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    struct stat status {};
    EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
    const bool is_file = S_ISREG(status.st_mode);
    tree[entry.path().lexically_relative(folder)] =
        std::to_string(status.st_mode) + " " + (is_file ? read_file(entry.path()) : "");
  }
  return tree;
}

std::string difference_of(const Tree& before, const Tree& after) {
  std::string text;
  for (const auto& [path, content] : before)
    if (!after.contains(path))
      text += path + " is gone; ";
    else if (after.at(path) != content)
      text += path + " is changed; ";
  for (const auto& [path, content] : after)
    if (!before.contains(path)) text += path + " is new; ";
  return text;
}

/// What a server has left in a folder, and how it is started there again.
struct Layout {
  std::string name;
  Config config;
  std::function<void(const fs::path&)> change = [](const fs::path&) {};
  bool is_like_another = false;  ///< the first defects are enough
};

void fill(PlainClient& client) {
  for (int i = 0; i < 20; ++i) client.command({"INCR", "numbers"});
  client.command({"RPUSH", "list", "a", "b", "c"});
  client.command({"EVAL", "redis.call('SET', 'x', '1') redis.call('HSET', 'h', 'f', 'v')", "0"});
}

void wait_for_rewrite(PlainClient& client) {
  client.command({"BGREWRITEAOF"});
  const auto running = [&] {
    const auto info = client.command({"INFO", "persistence"}).as_text();
    return info.find("aof_rewrite_in_progress:1") != std::string::npos ||
           info.find("aof_rewrite_scheduled:1") != std::string::npos;
  };
  while (running()) ::usleep(1000);
}

/// Lets a server fill a folder. A log is rewritten in between, so that it has a base and more.
void write_by_server(const fs::path& folder, const Config& config) {
  Config all = config;
  all.insert(all.end(), {"dir " + folder.string(), "hz 500"});
  const RedisServer server{all};
  PlainClient client{server.port()};
  fill(client);
  const bool logs = std::ranges::find(config, "appendonly yes") != config.end();
  if (logs)
    wait_for_rewrite(client);
  else
    client.command({"SAVE"});
  client.command({"SET", "after", "1"});
  if (!logs) client.command({"SAVE"});
}

/// A folder of Redis 7 as Redis 6 would have written it: one file.
void as_redis_6(const fs::path& folder, const std::string& name) {
  std::string content;
  for (const char* const suffix :
       {".1.base.rdb", ".1.base.aof", ".2.base.rdb", ".2.base.aof", ".1.incr.aof", ".2.incr.aof"})
    content += read_file(folder / "appendonlydir" / (single + std::string{suffix}));
  fs::remove_all(folder / "appendonlydir");
  write_file(folder / name, content);
}

const Config with_log{"appendonly yes", "appendfsync always", "aof-use-rdb-preamble no"};

Config also(Config config, std::initializer_list<const char*> lines) {
  config.insert(config.end(), lines.begin(), lines.end());
  return config;
}

void leave_temporary_files(const fs::path& folder) {
  write_file(folder / "temp-4711.rdb", "REDIS0010 half");
  write_file(folder / "temp-rewriteaof-4711.aof", "REDIS0010 half");
  write_file(folder / "temp-rewriteaof-bg-4711.aof", "*3\r\n$3\r\nSE");
  write_file(folder / "temp-appendonly.aof.incr", "*3\r\n$3\r\nSE");
}

std::vector<Layout> layouts() {
  const Config preamble{"appendonly yes", "appendfsync always", "aof-use-rdb-preamble yes"};
  const Config snapshot{"save 3600 1"};
  const auto in_logs = [](const fs::path& folder) { return folder / "appendonlydir"; };
  return {
      {"log", with_log},
      {"log with times", also(with_log, {"aof-timestamp-enabled yes"}), [](const fs::path&) {},
       true},
      {"log with a preamble", preamble},
      {"log of another name", also(with_log, {"appendfilename shop.aof"})},
      {"log in another folder", also(with_log, {"appenddirname logs"})},
      {"log of another name in another folder",
       also(with_log, {"appendfilename shop.aof", "appenddirname logs"})},
      {"snapshot", snapshot},
      {"snapshot of another name", also(snapshot, {"dbfilename shop.rdb"}), [](const fs::path&) {},
       true},
      // What does not begin as a snapshot is not known for one under such a name.
      {"snapshot of any name", also(snapshot, {"dbfilename shop"}), [](const fs::path&) {}, true},
      {"single file", with_log, [](const fs::path& folder) { as_redis_6(folder, single); }},
      {"single file with a preamble", preamble,
       [](const fs::path& folder) { as_redis_6(folder, single); }},
      {"single file of another name", also(with_log, {"appendfilename shop.aof"}),
       [](const fs::path& folder) {
         fs::remove_all(folder / "appendonlydir");
         write_file(folder / "shop.aof", "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
       }},
      {"single file and an empty folder of logs", with_log,
       [=](const fs::path& folder) {
         as_redis_6(folder, single);
         fs::create_directory(in_logs(folder));
       },
       true},
      {"single file that is listed and not yet moved", with_log,
       [=](const fs::path& folder) {
         as_redis_6(folder, single);
         fs::create_directory(in_logs(folder));
         write_file(in_logs(folder) / "appendonly.aof.manifest",
                    "file appendonly.aof seq 1 type b\n");
       },
       true},
      {"single file that is torn", with_log,
       [](const fs::path& folder) {
         as_redis_6(folder, single);
         fs::resize_file(folder / single, fs::file_size(folder / single) - 3);
       }},
      {"log and a snapshot", also(with_log, {"save 3600 1"}),
       [](const fs::path& folder) { write_file(folder / "dump.rdb", "REDIS0010 older"); }, true},
      {"log and temporary files", with_log, leave_temporary_files, true},
      {"temporary files alone", with_log,
       [=](const fs::path& folder) {
         fs::remove_all(in_logs(folder));
         leave_temporary_files(folder);
       },
       true},
      {"log and files that it does not list", with_log,
       [=](const fs::path& folder) {
         for (const char* const name : {"appendonly.aof.7.base.aof", "appendonly.aof.1.incr.aof",
                                        "appendonly.aof.3.base.aof", "appendonly.aof"})
           write_file(in_logs(folder) / name, "*2\r\n$4\r\nINCR\r\n$6\r\nbackup\r\n");
         write_file(folder / single, "*2\r\n$4\r\nINCR\r\n$6\r\nbackup\r\n");
       },
       true},
      {"log and a later file that it does not list", with_log,
       [=](const fs::path& folder) {
         write_file(in_logs(folder) / "appendonly.aof.3.incr.aof", "*1\r\n$8\r\nFLUSHALL\r\n");
       },
       true},
      {"log without its list", with_log,
       [=](const fs::path& folder) { fs::remove(in_logs(folder) / "appendonly.aof.manifest"); }},
      {"empty single file", with_log,
       [=](const fs::path& folder) {
         fs::remove_all(in_logs(folder));
         write_file(folder / single, "");
       }},
      {"other programs' files", with_log, [=](const fs::path& folder) {
         fs::remove_all(in_logs(folder));
         write_file(folder / "notes.md", "*1 REDIS is not here\n");
         fs::create_directory(folder / "images");
         write_file(folder / "images/one.png", "\x89PNG");
       }}};
}

/// The files of the folder, its own first.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator{folder})
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

struct Defect {
  std::string name;
  std::function<void(const fs::path& file)> make;
};

void splice(const fs::path& file, std::size_t percent, std::string_view bytes) {
  auto content = read_file(file);
  content.insert(content.size() * percent / 100, bytes);
  write_file(file, content);
}

std::vector<Defect> defects() {
  return {{"garbage in its middle", [](const fs::path& file) { splice(file, 50, "\x01 garbage"); }},
          {"garbage at its end", [](const fs::path& file) { splice(file, 100, "garbage\r\n"); }},
          {"no file", [](const fs::path& file) { fs::remove(file); }},
          {"garbage at its beginning", [](const fs::path& file) { splice(file, 0, "garbage\n"); }},
          {"an unknown command", [](const fs::path& file) { splice(file, 100, unknown_command); }},
          {"a torn end",
           [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) * 9 / 10); }},
          {"nothing in it", [](const fs::path& file) { fs::resize_file(file, 0); }},
          {"a later version", [](const fs::path& file) { splice(file, 0, "REDIS9999\xfa"); }},
          {"a folder in its place",
           [](const fs::path& file) {
             fs::remove(file);
             fs::create_directory(file);
           }},
          {"a link in its place", [](const fs::path& file) {
             const auto other = fs::path{file}.concat(".real");
             fs::rename(file, other);
             fs::create_symlink(other.filename(), file);
           }}};
}

/// Does with a folder what a program does; gives what was held, or why it was refused.
struct Opened {
  std::string refusal;
  Dump dump;
};
Opened open_and_look(const fs::path& folder) {
  Opened opened;
  try {
    const auto store = open_embedded({.path = folder.string(), .fsync = Fsync::never});
    opened.dump = test::dump(*store);
    store->rewrite();
    store->run({"INCR", "written:by:us"}).get();
  } catch (const Error& error) {
    opened.refusal = error.message();
  }
  return opened;
}

/// What the server of that layout shows; with `appendonly`, as it would be opened by ours.
Dump loaded_by_server(const fs::path& folder, Config config) {
  config.push_back("dir " + folder.string());
  const RedisServer server{config};
  PlainClient client{server.port()};
  return test::dump([&](std::span<const std::string_view> words) { return client.command(words); });
}

bool names_a_file(const std::string& message, const Tree& tree) {
  return std::ranges::any_of(tree, [&](const auto& entry) {
    return message.find(fs::path{entry.first}.filename()) != std::string::npos;
  });
}

/// What the log of a folder listed before it was opened; the engine may change these.
bool is_listed(const Tree& before, const std::string& path) {
  const auto manifest = before.find("appendonlydir/appendonly.aof.manifest");
  if (path == manifest->first || path == "sluice.lock") return true;
  return manifest->second.find("file " + fs::path{path}.filename().string() + " ") !=
         std::string::npos;
}

/// What is to open as it is.
bool opens(const std::string& layout) {
  for (const char* const name : {"log", "log with a preamble", "snapshot", "snapshot of any name",
                                 "snapshot of another name", "single file with a preamble"})
    if (layout == name) return true;
  return false;
}

class ForeignFolders : public testing::Test {
 protected:
  /// Opens the folder, and says what was wrong with that.
  void look(const fs::path& folder, const Layout& layout, const std::string& what) {
    SCOPED_TRACE(layout.name + ", " + what);
    const Tree before = tree_of(folder);
    const TempDir copy;
    fs::copy(folder, copy.path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const Opened opened = open_and_look(folder);
    ++looked_;
    if (!opened.refusal.empty()) {
      EXPECT_EQ(difference_of(before, tree_of(folder)), "") << opened.refusal;
      EXPECT_TRUE(names_a_file(opened.refusal, before) ||
                  opened.refusal.find("appendonly") != std::string::npos)
          << opened.refusal;
      EXPECT_TRUE(what != "sound" || !opens(layout.name)) << opened.refusal;
      ++refused_;
      return;
    }
    try {
      EXPECT_EQ(test::difference(opened.dump, loaded_by_server(copy.path(), layout.config)), "");
    } catch (const std::runtime_error&) {
      ADD_FAILURE() << "the server refuses it";
    }
    Dump then = opened.dump;
    then.erase("written:by:us");
    const Tree after = tree_of(folder);
    for (const auto& [path, content] : before) {
      const bool ours = before.contains("appendonlydir/appendonly.aof.manifest")
                            ? is_listed(before, path)
                            : path == single || path.starts_with("appendonlydir");
      if (!ours) EXPECT_TRUE(after.contains(path) && after.at(path) == content) << path;
    }
    auto again = open_and_look(folder);
    EXPECT_EQ(again.dump.erase("written:by:us"), 1U) << again.refusal;
    EXPECT_EQ(test::difference(again.dump, then), "") << again.refusal;
  }

  int looked_ = 0;
  int refused_ = 0;
};

TEST_F(ForeignFolders, R01_R02_EachLayoutOpensEqualToTheServerOrStaysAsItWas) {
  for (const auto& layout : layouts()) {
    const TempDir written;
    write_by_server(written.path(), layout.config);
    layout.change(written.path());
    const auto copied = [&](TempDir& into) {
      fs::copy(written.path(), into.path(), fs::copy_options::recursive);
      return into.path();
    };
    TempDir sound;
    look(copied(sound), layout, "sound");
    const auto all = defects();
    for (const auto& defect : layout.is_like_another ? std::span{all}.first(3) : std::span{all})
      for (std::size_t i = 0; i < files_of(written.path()).size(); ++i) {
        TempDir broken;
        const auto file = files_of(copied(broken))[i];
        defect.make(file);
        look(broken.path(), layout, file.filename().string() + ": " + defect.name);
      }
  }
  RecordProperty("looked", looked_);
  RecordProperty("refused", refused_);
  EXPECT_GT(looked_, 250);
  EXPECT_GT(refused_, 150);
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from);
  if (begin == std::string::npos) return {};
  return text.substr(begin + from.size(), text.find(to, begin + from.size()) - begin - from.size());
}

/// A redis-server as the advice starts it: each option is a line of its configuration.
Config options_in(const std::string& advice) {
  Config config{"hz 500"};
  std::string options = between(advice, "start redis-server ", ", ") + " --";
  for (auto end = options.find(" --"); end != std::string::npos; end = options.find(" --")) {
    config.push_back(options.substr(2, end - 2));
    options.erase(0, end + 1);
  }
  return config;
}

/// Does each step of the advice to the letter, and gives the folder that it says to open.
fs::path follow(const std::string& advice) {
  {
    const RedisServer server{options_in(advice)};
    PlainClient client{server.port()};
    EXPECT_GT(client.command({"DBSIZE"}).as_integer(), 0) << advice;
    if (advice.find("run CONFIG SET appendonly yes") != std::string::npos)
      client.command({"CONFIG", "SET", "appendonly", "yes"});
    else if (advice.find("run BGREWRITEAOF") != std::string::npos)
      client.command({"BGREWRITEAOF"});
    while (client.command({"INFO", "persistence"}).as_text().find("aof_rewrite_in_progress:0") ==
           std::string::npos)
      ::usleep(1000);
    try {
      client.command({"SHUTDOWN", "NOSAVE"});
    } catch (const std::system_error&) {  // it has ended
    }
  }
  std::string rest = advice.substr(advice.find("NOSAVE"));
  for (auto move = between(rest, ", mv ", ","); !move.empty(); move = between(rest, ", mv ", ",")) {
    EXPECT_EQ(std::system(("mv " + move).c_str()), 0) << move;
    rest.erase(0, rest.find(move) + move.size());
  }
  return between(rest, "and open ", ". Else").substr(0, rest.rfind(". "));
}

/// Writes the manifest that the advice names, with the lines that it says.
void write_manifest(const std::string& advice) {
  std::string lines;
  std::string rest = advice;
  for (auto line = between(rest, "'file ", "'"); !line.empty();
       line = between(rest, "'file ", "'")) {
    lines += "file " + line + "\n";
    rest.erase(0, rest.find(line) + line.size());
  }
  write_file(advice.substr(0, advice.find(", which says")), lines);
}

/// Follows what is said until the folder opens, and gives what it holds.
Dump opened_by_advice(fs::path folder, const fs::path& elsewhere) {
  for (int step = 0; step < 6; ++step) {
    const Opened opened = open_and_look(folder);
    if (opened.refusal.empty()) return opened.dump;
    if (opened.refusal.find("is what a redis-server leaves") != std::string::npos) {
      const fs::path file = opened.refusal.substr(0, opened.refusal.find(" is what"));
      fs::rename(file, elsewhere / file.filename());
    } else if (opened.refusal.find(", which says what counts") != std::string::npos) {
      write_manifest(opened.refusal);
    } else {
      folder = follow(opened.refusal);
    }
  }
  return {{"it was never opened", ""}};
}

TEST_F(ForeignFolders, E1_TheAdviceLeadsToAFolderThatOpensEqualToTheServer) {
  auto all = layouts();
  const Config snapshot{"save 3600 1"};
  const auto lose = [](const char* const name) {
    return [=](const fs::path& folder) { fs::remove(folder / name); };
  };
  all.push_back({"log and an older snapshot", also(with_log, {"appenddirname logs"}),
                 [](const fs::path& folder) { write_file(folder / "dump.rdb", "REDIS0010 old"); }});
  all.push_back({"log of another name without its list",
                 also(with_log, {"appendfilename shop.aof"}),
                 lose("appendonlydir/shop.aof.manifest")});
  for (const auto& layout : all) {
    SCOPED_TRACE(layout.name);
    if (layout.name.find("later file") != std::string::npos) continue;
    const TempDir written;
    const TempDir copy;
    const TempDir elsewhere;
    write_by_server(written.path(), layout.config);
    const bool is_without = layout.name.find("without its list") != std::string::npos;
    if (!is_without) layout.change(written.path());
    fs::copy(written.path(), copy.path(), fs::copy_options::recursive);
    const auto expected = loaded_by_server(copy.path(), layout.config);
    if (is_without) layout.change(written.path());
    EXPECT_EQ(test::difference(opened_by_advice(written.path(), elsewhere.path()), expected), "");
  }
}

TEST_F(ForeignFolders, E2_ASnapshotThatIsNewerThanTheLogIsTold) {
  const TempDir folder;
  {
    const RedisServer server{also(with_log, {("dir " + folder.str()).c_str()})};
    PlainClient client{server.port()};
    client.command({"SET", "stock", "100"});
    client.command({"CONFIG", "SET", "appendonly", "no"});
    client.command({"SET", "stock", "7"});
    client.command({"SAVE"});
  }
  const auto dump = folder / "dump.rdb";
  const auto told = [&] {
    const sluice::test::CollectedLog log;
    open_embedded({.path = folder.str()});
    return log.text().find("dump.rdb is newer than the log") != std::string::npos;
  };
  fs::last_write_time(dump, fs::file_time_type::clock::now() + std::chrono::seconds{5});
  EXPECT_TRUE(told());
  EXPECT_FALSE(told()) << "the folder is the engine's now";
  fs::remove(folder / "sluice.lock");
  fs::last_write_time(dump, fs::file_time_type::clock::now() - std::chrono::hours{1});
  EXPECT_FALSE(told()) << "the log is newer";
}

TEST_F(ForeignFolders, E3_ADatabaseBeyondOursIsNoDamage) {
  const TempDir folder;
  {
    const RedisServer server{also(with_log, {("dir " + folder.str()).c_str(), "databases 32"})};
    PlainClient client{server.port()};
    client.command({"SELECT", "20"});
    client.command({"SET", "k", "v"});
  }
  try {
    open_embedded({.path = folder.str()});
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument) << error.message();
    EXPECT_NE(error.message().find("0 to 15"), std::string::npos) << error.message();
  }
}

void give_away(const fs::path& folder) {
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(::chown(folder.c_str(), nobody, nobody), 0);
  for (const auto& entry : fs::recursive_directory_iterator{folder})
    ASSERT_EQ(::chown(entry.path().c_str(), nobody, nobody), 0);
}

/// 0: it was opened; 1: it was refused, with the name of what is in the way.
int open_as_nobody(const fs::path& folder, const std::string& name) {
  Process other{[&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 2;
    try {
      open_embedded({.path = folder.string()});
      return 0;
    } catch (const Error& error) {
      return error.message().find(name) != std::string::npos ? 1 : 3;
    }
  }};
  return other.wait();
}

TEST_F(ForeignFolders, R01_WhatTheUserMayNotUseIsRefusedAndStaysAsItWas) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  for (const bool of_redis_6 : {false, true}) {
    const TempDir written;
    write_by_server(written.path(), with_log);
    if (of_redis_6) as_redis_6(written.path(), single);
    std::vector<std::string> paths{"."};
    for (const auto& [path, content] : tree_of(written.path())) paths.push_back(path);
    for (const auto& path : paths)
      for (const mode_t mode : {0000U, 0400U, 0500U}) {
        SCOPED_TRACE(testing::Message() << path << " " << mode);
        const TempDir folder;
        fs::copy(written.path(), folder.path(), fs::copy_options::recursive);
        give_away(folder.path());
        const auto place = folder.path() / path;
        ASSERT_EQ(::chmod(place.c_str(), mode), 0);
        const Tree before = tree_of(folder.path());
        // A log that has an increment is opened also where no other can be made.
        const bool is_fit = path == "appendonlydir" && mode == 0500;
        const auto name = path == "." ? folder.str() : place.filename().string();
        EXPECT_EQ(open_as_nobody(folder.path(), name), is_fit ? 0 : 1);
        if (!is_fit) EXPECT_EQ(difference_of(before, tree_of(folder.path())), "");
      }
  }
}

}  // namespace
}  // namespace sluice::engine
