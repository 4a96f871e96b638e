#include "engine/log/append_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/error.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::engine {
namespace {

constexpr std::string_view single_file = "appendonly.aof";
constexpr std::string_view draft_manifest = "temp-appendonly.aof.manifest";

void synced(File& file) {
  file.sync();
  count(metrics().engine_fsyncs);
}

}  // namespace

std::unique_ptr<Folder> open_log_folder(const std::string& folder) {
  auto above = open_folder(folder);
  auto logs = open_folder(folder + "/appendonlydir", Links::refused);
  const auto single = fmt::format("{}/{}", folder, single_file);
  const auto manifest = fmt::format("{}/{}", logs->path(), Manifest::file_name);
  if (::access(single.c_str(), F_OK) != 0 || ::access(manifest.c_str(), F_OK) == 0) return logs;
  const auto place = fmt::format("{}/{}", logs->path(), single_file);
  if (::rename(single.c_str(), place.c_str()) != 0)
    throw std::system_error{errno, std::generic_category(), "cannot move " + single};
  logs->sync();
  above->sync();
  return logs;
}

AppendLog::AppendLog(std::unique_ptr<Folder> folder, const Replay& replay)
    : folder_(std::move(folder)) {
  const auto names = folder_->list();
  manifest_ = read_manifest(names);
  load(replay);
  bool broken = false;
  if (!current_) use_increment(draft_increment(), broken);
  remove_unlisted();
}

std::string AppendLog::path() const {
  return fmt::format("{}/{}", folder_->path(),
                     manifest_.increments.empty() ? "" : manifest_.increments.back().name);
}

Manifest AppendLog::read_manifest(const std::vector<std::string>& names) {
  const auto there = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (there(Manifest::file_name)) {
    const std::string name{Manifest::file_name};
    return parse_manifest(read_all(*folder_->open(name), name, Manifest::largest_file));
  }
  Manifest manifest;
  if (there(single_file)) manifest.base = Manifest::LogFile{.name = std::string{single_file}};
  // A crash before the first manifest leaves an empty increment; anything else had a manifest once.
  for (const auto& name : names)
    if (is_log_file(name) && folder_->open(name)->size() > 0)
      throw Error{Errc::corrupt, fmt::format("{} has {} but no {}; restore it from a backup",
                                             folder_->path(), name, Manifest::file_name)};
  return manifest;
}

void AppendLog::load(const Replay& replay) {
  if (manifest_.base) {
    load_file(*manifest_.base, manifest_.increments.empty(), replay);
    base_size_ = size_.load();
  }
  for (const auto& entry : manifest_.increments)
    load_file(entry, &entry == &manifest_.increments.back(), replay);
  report_.bytes = size_;
}

void AppendLog::load_file(const Manifest::LogFile& entry, bool last, const Replay& replay) {
  std::shared_ptr<File> file;
  try {
    file = folder_->open(entry.name);
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {
    throw Error{Errc::corrupt,
                fmt::format("{}, which {} lists: {}; restore it from a backup", error.what(),
                            Manifest::file_name, error.code().message())};
  }
  const auto path = fmt::format("{}/{}", folder_->path(), entry.name);
  const auto size = file->size();
  const auto whole = load_log_file(*file, path, last, replay, report_);
  if (whole < size) {
    file->truncate(whole);
    file->sync();
    report_.cut_file = path;
    report_.cut_at = whole;
    report_.cut_bytes = size - whole;
    log(LogLevel::warning,
        fmt::format("{} ended in the middle of a write, as after a crash: cut {} bytes at byte {}",
                    path, size - whole, whole));
  }
  size_ += whole;
  if (!last || manifest_.increments.empty()) return;
  begin_appending(std::move(file), whole);
}

void AppendLog::begin_appending(std::shared_ptr<File> file, std::uint64_t size) {
  current_ = std::move(file);
  current_size_ = size;
  checksums_ = {};
}

void AppendLog::append(std::string& bytes, bool sync) {
  checksums_.seal(bytes);
  try {
    current_->append(bytes);
    if (sync) synced(*current_);
  } catch (const std::system_error&) {
    try {
      current_->truncate(current_size_);
    } catch (const std::system_error& error) {
      log(LogLevel::warning, fmt::format("{}; the next opening will", error.what()));
    }
    throw;
  }
  current_size_ += bytes.size();
  size_ += bytes.size();
}

AppendLog::Draft AppendLog::draft_increment() {
  auto entry = manifest_.next_increment();
  auto file = folder_->create(entry.name);
  return {std::move(entry), std::move(file)};
}

AppendLog::Draft AppendLog::draft_base() {
  auto entry = manifest_.next_base();
  auto file = folder_->create(entry.name);
  return {std::move(entry), std::move(file)};
}

void AppendLog::discard(Draft draft) noexcept {
  draft.file = nullptr;
  remove_unlisted();
}

void AppendLog::use_increment(const Draft& increment, bool& broken) {
  Manifest manifest = manifest_;
  manifest.history.clear();
  manifest.increments.push_back(increment.entry);
  replace_manifest(std::move(manifest), broken);
  begin_appending(increment.file, 0);
}

void AppendLog::use_base(const Draft& base, const Draft* increment, bool& broken) {
  Manifest manifest;
  manifest.base = base.entry;
  manifest.increments.push_back(increment ? increment->entry : manifest_.increments.back());
  replace_manifest(std::move(manifest), broken);
  if (increment) begin_appending(increment->file, 0);
  base_size_ = base.file->size();
  size_ = base_size_ + current_size_;
  count(metrics().engine_rewrites);
  remove_unlisted();
}

void AppendLog::replace_manifest(Manifest manifest, bool& broken) {
  const std::string draft{draft_manifest};
  const auto file = folder_->create(draft);
  file->append(to_text(manifest));
  file->sync();
  folder_->sync();  // the files that it lists, before the list
  folder_->rename(draft, std::string{Manifest::file_name});
  manifest_ = std::move(manifest);
  broken = true;
  folder_->sync();
  broken = false;
}

void AppendLog::remove_unlisted() noexcept {
  try {
    for (const auto& name : folder_->list())
      if ((is_log_file(name) || name == single_file || name == draft_manifest) &&
          !manifest_.lists(name))
        folder_->remove(name);
  } catch (const std::system_error& error) {
    log(LogLevel::warning,
        fmt::format("{}; it is not needed and will be removed at the next opening", error.what()));
  }
}

}  // namespace sluice::engine
