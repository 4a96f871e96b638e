// Where the log of a folder lies, and what else in it may be a redis-server's.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/log/append_log.hpp"
#include "engine/rdb/snapshot_reader.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_log = "appendonly.aof";

bool has(const std::unique_ptr<Folder>& folder, std::string_view name) {
  return folder && std::ranges::count(folder->list(), name) > 0;
}

/// `single`: the file of the folder above that counts as a log of one file.
class LogFolder final : public Folder {
 public:
  LogFolder(std::unique_ptr<Folder> above, std::unique_ptr<Folder> logs, std::string single)
      : above_(std::move(above)),
        logs_(std::move(logs)),
        path_(above_->path_of("appendonlydir")),
        single_(std::move(single)) {}

  std::unique_ptr<File> create(const std::string& name) override {
    if (!logs_) logs_ = open_folder(path_, Links::refused);
    return logs_->create(name);
  }
  std::unique_ptr<File> open(const std::string& name) override {
    return is_above(name) ? above_->open(single_) : logs_->open(name);
  }
  void rename(const std::string& from, const std::string& to) override { logs_->rename(from, to); }
  void remove(const std::string& name) override { logs_->remove(name); }
  void sync() override { logs_->sync(); }
  std::vector<std::string> list() const override {
    auto names = logs_ ? logs_->list() : std::vector<std::string>{};
    if (is_above(single_log)) names.emplace_back(single_log);
    return names;
  }
  const std::string& path() const noexcept override { return path_; }
  std::string path_of(const std::string& name) const override {
    return is_above(name) ? above_->path_of(single_) : path_ + "/" + name;
  }
  /// A snapshot stays where it is, and is a part of the log besides.
  void take_over(const std::string& name) override {
    if (!is_above(name)) return;
    const auto from = path_of(name);
    const auto to = path_ + "/" + name;
    const bool is_log = single_ == single_log;
    if ((is_log ? std::rename(from.c_str(), to.c_str()) : ::link(from.c_str(), to.c_str())) != 0)
      throw std::system_error{
          errno, std::generic_category(),
          fmt::format("cannot {} {} to {}", is_log ? "move" : "link", from, to)};
    logs_->sync();
    above_->sync();
    if (!is_log)
      log(LogLevel::info, fmt::format("{} was read, and stays as it is; the log in {} counts from "
                                      "now on",
                                      from, path_));
  }

 private:
  bool is_above(const std::string& name) const {
    return name == single_log && !has(logs_, name) && has(above_, single_);
  }

  std::unique_ptr<Folder> above_;
  std::unique_ptr<Folder> logs_;  // null: not yet
  const std::string path_;
  const std::string single_;
};

/// What a file of a server may be, under any name that it may be told to use. What is to be gone on
/// with before the rest comes first.
enum class Kind { listed, log, snapshot, temporary, other };

/// Whether a file lies beside the manifest of the log whose name it has.
std::string_view stem_of(std::string_view name) {
  const auto parsed = parse_log_name(name);
  return parsed ? parsed->stem : name;
}
fs::path manifest_of(const fs::path& file) {
  const auto name = file.filename().string();
  return file.parent_path() / fmt::format("{}.manifest", stem_of(name));
}

std::string beginning_of(const fs::path& file) {
  std::string head(256, '\0');
  std::ifstream stream{file, std::ios::binary};
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  return head;
}

/// Of a log that begins with a snapshot it says so itself.
Kind kind_of_content(std::string_view text) {
  using namespace std::string_view_literals;
  const auto after_digits = [&](std::size_t from) {
    return text.substr(std::min(text.find_first_not_of("0123456789", from), text.size()));
  };
  if (text.starts_with("REDIS") && !after_digits(5).starts_with(text.substr(5))) {
    const bool is_log = text.find("aof-preamble\xc0\1"sv) != std::string_view::npos ||
                        text.find("aof-base\xc0\1"sv) != std::string_view::npos;
    return is_log ? Kind::log : Kind::snapshot;
  }
  const bool is_log = (text.starts_with('*') && after_digits(1).starts_with("\r\n$")) ||
                      text.starts_with("#TS:") || text.starts_with("#SUM");
  return is_log ? Kind::log : Kind::other;
}

Kind kind_of(const fs::path& path) {
  const auto name = path.filename().string();
  std::error_code ignored;
  const bool is_data = fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) > 0;
  auto kind = is_data ? kind_of_content(beginning_of(path)) : Kind::other;
  if (path.extension() == ".rdb" && kind == Kind::other) kind = Kind::snapshot;
  if (is_data && (path.extension() == ".aof" || parse_log_name(name))) kind = Kind::log;
  if (kind != Kind::other && name.starts_with("temp-")) return Kind::temporary;
  return kind == Kind::log && fs::exists(manifest_of(path), ignored) ? Kind::listed : kind;
}

struct Found {
  Kind kind = Kind::other;
  fs::path path;
};
/// One folder deep, as a server's files lie.
Found find_data(const fs::path& folder, bool deeper) {
  Found found;
  for (const auto& name : names_in(folder)) {
    Found next{kind_of(folder / name), folder / name};
    std::error_code ignored;
    if (next.kind == Kind::other && deeper && name != "lost+found" &&
        fs::is_directory(next.path, ignored))
      next = find_data(next.path, false);
    if (next.kind < found.kind) found = std::move(next);
  }
  return found;
}

/// As a shell and a redis-server take it for one word.
std::string word(const fs::path& path) {
  const auto text = path.string();
  const bool is_plain = std::ranges::all_of(
      text, [](unsigned char c) { return std::isalnum(c) || std::strchr("/._-+,:@%=", c); });
  return is_plain ? text : fmt::format("'{}'", text);
}

constexpr std::string_view look = "see with DBSIZE that it has your keys";
constexpr std::string_view finish =
    "wait until INFO persistence says aof_rewrite_in_progress:0, run SHUTDOWN NOSAVE";

std::string steps_from_snapshot(const fs::path& file) {
  const auto folder = word(file.parent_path());
  return fmt::format(
      "start redis-server --dir {} --dbfilename {} --appendonly no --appendfilename "
      "appendonly.aof --appenddirname appendonlydir --aof-use-rdb-preamble no, {}, "
      "run CONFIG SET appendonly yes, {}, and open {}",
      folder, word(file.filename()), look, finish, folder);
}

/// Whether it is the only snapshot of the folder, and one by its content.
bool is_to_be_read(const fs::path& folder, const fs::path& snapshot) {
  const auto is_another = [&](const std::string& name) {
    return folder / name != snapshot && kind_of(folder / name) == Kind::snapshot;
  };
  return snapshot.parent_path() == folder && is_snapshot(beginning_of(snapshot)) &&
         std::ranges::none_of(names_in(folder), is_another);
}

/// A folder without a log: the name of the snapshot that it has instead; empty: it has nothing that
/// a redis-server leaves.
std::string snapshot_or_refusal(const std::string& folder) {
  const auto [kind, path] = find_data(folder, true);
  const auto file = path.string();
  if (kind == Kind::other) return {};
  if (kind == Kind::snapshot && is_to_be_read(folder, path)) return path.filename().string();
  if (kind == Kind::log && parse_log_name(path.filename().string()))
    throw without_manifest(path.parent_path(), stem_of(path.filename().string()),
                           names_in(path.parent_path()));
  if (kind == Kind::temporary)
    throw Error{Errc::bad_argument,
                fmt::format("{} is what a redis-server leaves that was killed in mid-work, and {} "
                            "has no log; nothing was changed. Move the file away, or name another "
                            "folder",
                            file, folder)};
  throw Error{
      Errc::bad_argument,
      fmt::format("{} looks like the data of a redis-server, and {} has no log that this "
                  "engine reads; nothing was changed. To go on with that data: {}. Else "
                  "move the file away, or name another folder",
                  file, folder,
                  kind == Kind::snapshot ? steps_from_snapshot(path) : steps_from_log(file))};
}

fs::file_time_type time_of(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error ? fs::file_time_type::min() : time;
}

/// A server that wrote both may have written the snapshot last by rights, so nothing is refused.
void warn_of_newer_snapshot(const fs::path& folder, const fs::path& log_file) {
  auto newest = time_of(log_file);
  std::error_code ignored;
  if (const auto logs = folder / "appendonlydir"; fs::is_directory(logs, ignored))
    for (const auto& name : names_in(logs)) newest = std::max(newest, time_of(logs / name));
  for (const auto& name : names_in(folder))
    if (kind_of(folder / name) == Kind::snapshot && time_of(folder / name) > newest)
      log(LogLevel::warning,
          fmt::format("{} is newer than the log {}, which is what counts. If the redis-server ran "
                      "with appendonly no of late, the log is out of date: compare a few keys with "
                      "those of a redis-server that loads the snapshot; to go on with the "
                      "snapshot, move the log away and open the folder again",
                      (folder / name).string(), log_file.parent_path().string()));
}

}  // namespace

std::string steps_from_log(const std::string& file) {
  const fs::path path{file};
  std::error_code ignored;
  const auto name = path.filename().string();
  const bool is_listed = fs::exists(manifest_of(path), ignored);
  const std::string stem{is_listed ? stem_of(name) : name};
  const fs::path logs = is_listed ? path.parent_path().filename() : "appendonlydir";
  const fs::path folder = is_listed ? path.parent_path().parent_path() : path.parent_path();
  std::string moves;
  if (logs != "appendonlydir")
    moves += fmt::format(", mv -T {} {}", word(folder / logs), word(folder / "appendonlydir"));
  if (stem != single_log)
    moves += fmt::format(", mv {} {}", word(folder / "appendonlydir" / (stem + ".manifest")),
                         word(folder / "appendonlydir" / Manifest::file_name));
  return fmt::format(
      "start redis-server --dir {} --appendonly yes --appenddirname {} "
      "--appendfilename {} --aof-use-rdb-preamble no, {}, run BGREWRITEAOF, {}{}, "
      "and open {}",
      word(folder), word(logs), word(stem), look, finish, moves, word(folder));
}

std::unique_ptr<Folder> open_log_folder(const std::string& path, bool is_new) {
  auto above = open_folder(path);
  auto logs = find_folder(above->path_of("appendonlydir"), Links::refused);
  const bool is_listed = has(logs, Manifest::file_name);
  const bool is_single = has(above, single_log);
  if (!is_listed && is_single && has(logs, single_log))
    throw Error{Errc::bad_argument,
                fmt::format("{} and {} are both there; move the one away that does not count",
                            above->path_of(single_log), logs->path_of(single_log))};
  const auto is_part = [&](const std::string& name) {  // AppendLog misses the manifest
    return is_log_file(name) && logs->open(name)->size() > 0;
  };
  const bool is_log = is_listed || is_single || has(logs, single_log);
  std::string single = single_log;
  if (!is_log && (!logs || std::ranges::none_of(logs->list(), is_part)))
    if (auto snapshot = snapshot_or_refusal(path); !snapshot.empty()) single = std::move(snapshot);
  if (is_log && is_new)
    warn_of_newer_snapshot(path, is_listed ? logs->path_of(std::string{Manifest::file_name})
                                           : above->path_of(single_log));
  return std::make_unique<LogFolder>(std::move(above), std::move(logs), std::move(single));
}

}  // namespace sluice::engine
