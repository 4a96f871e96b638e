// Where the log of a folder lies, and what else in it may be a redis-server's.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "engine/log/append_log.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_log = "appendonly.aof";

bool has(const std::unique_ptr<Folder>& folder, std::string_view name) {
  return folder && std::ranges::count(folder->list(), name) > 0;
}

class LogFolder final : public Folder {
 public:
  LogFolder(std::unique_ptr<Folder> above, std::unique_ptr<Folder> logs)
      : above_(std::move(above)), logs_(std::move(logs)), path_(above_->path_of("appendonlydir")) {}

  std::unique_ptr<File> create(const std::string& name) override {
    if (!logs_) logs_ = open_folder(path_, Links::refused);
    return logs_->create(name);
  }
  std::unique_ptr<File> open(const std::string& name) override {
    return (is_above(name) ? above_ : logs_)->open(name);
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
    return is_above(name) ? above_->path_of(name) : path_ + "/" + name;
  }
  void take_over(const std::string& name) override {
    if (!is_above(name)) return;
    if (std::rename(path_of(name).c_str(), (path_ + "/" + name).c_str()) != 0)
      throw std::system_error{errno, std::generic_category(), "cannot move " + path_of(name)};
    logs_->sync();
    above_->sync();
  }

 private:
  bool is_above(const std::string& name) const {
    return name == single_log && !has(logs_, name) && has(above_, name);
  }

  std::unique_ptr<Folder> above_;
  std::unique_ptr<Folder> logs_;  // null: not yet
  const std::string path_;
};

/// Whether a file is what a server makes, under any name that it may be told to use.
bool may_be_data(const fs::path& path) {
  if (path.extension() == ".rdb") return true;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) == 0) return false;
  if (path.extension() == ".aof") return true;
  std::array<char, 16> head{};
  std::ifstream{path, std::ios::binary}.read(head.data(), head.size());
  const std::string_view text{head.data(), head.size()};
  const auto after_digits = [&](std::size_t from) {
    return text.substr(std::min(text.find_first_not_of("0123456789", from), text.size()));
  };
  return (text.starts_with("REDIS") && !after_digits(5).starts_with(text.substr(5))) ||
         (text.starts_with('*') && after_digits(1).starts_with("\r\n$")) ||
         text.starts_with("#TS:");
}

/// One folder deep, as a server's files lie. Empty: there is none.
fs::path find_data(const fs::path& folder, bool deeper) {
  for (const auto& entry : fs::directory_iterator{folder}) {
    if (may_be_data(entry.path())) return entry.path();
    if (!deeper || !entry.is_directory() || entry.path().filename() == "lost+found") continue;
    if (auto found = find_data(entry.path(), false); !found.empty()) return found;
  }
  return {};
}

void refuse_other_data(const std::string& folder) {
  const auto found = find_data(folder, true);
  if (found.empty()) return;
  throw Error{Errc::bad_argument,
              fmt::format("{} looks like the data of a redis-server, and {} has no log that this "
                          "engine reads; nothing was changed. To go on with that data start the "
                          "server with it and with --appendfilename appendonly.aof "
                          "--appenddirname appendonlydir, run CONFIG SET aof-use-rdb-preamble no, "
                          "CONFIG SET appendonly yes and BGREWRITEAOF, and end it. Else move the "
                          "file away, or name another folder",
                          found.string(), folder)};
}

}  // namespace

std::unique_ptr<Folder> open_log_folder(const std::string& path) {
  auto above = open_folder(path);
  auto logs = find_folder(above->path_of("appendonlydir"), Links::refused);
  const bool is_listed = has(logs, Manifest::file_name);
  const bool is_single = has(above, single_log);
  if (!is_listed && is_single && has(logs, single_log))
    throw Error{Errc::bad_argument,
                fmt::format("{} and {} are both there; move the one away that does not count",
                            above->path_of(single_log), logs->path_of(single_log))};
  if (!is_listed && !is_single && !has(logs, single_log)) refuse_other_data(path);
  return std::make_unique<LogFolder>(std::move(above), std::move(logs));
}

}  // namespace sluice::engine
