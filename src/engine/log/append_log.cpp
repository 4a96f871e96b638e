#include "engine/log/append_log.hpp"

#include <fmt/format.h>

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

AppendLog::AppendLog(std::unique_ptr<Folder> folder, const Replay& replay)
    : folder_(std::move(folder)) {
  manifest_ = read_manifest(folder_->list());
  const auto last = load(replay);
  // All of it was read and accepted: from here on the folder is changed.
  if (current_) {
    cut(*last);
  } else {
    const Draft increment = draft_increment();  // which also shows that files can be made
    if (last) cut(*last);
    if (manifest_.base && manifest_.base->name == single_file)
      folder_->take_over(manifest_.base->name);
    bool broken = false;
    use_increment(increment, broken);
  }
  remove_history();
}

Manifest AppendLog::read_manifest(const std::vector<std::string>& names) {
  const auto there = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (there(Manifest::file_name)) {
    const std::string name{Manifest::file_name};
    auto manifest = parse_manifest(read_all(*folder_->open(name), name, Manifest::largest_file));
    refuse_later_files(manifest, names);
    return manifest;
  }
  Manifest manifest;
  if (there(single_file)) manifest.base = Manifest::LogFile{.name = std::string{single_file}};
  // A crash before the first manifest leaves an empty increment; anything else had a manifest once.
  for (const auto& name : names)
    if (is_log_file(name) && folder_->open(name)->size() > 0)
      throw without_manifest(folder_->path(), single_file, names);
  return manifest;
}

/// An increment is listed before it is written to. Where a later one than all that are listed has
/// something in it, the list has lost its end, or is older than the files.
void AppendLog::refuse_later_files(const Manifest& manifest,
                                   const std::vector<std::string>& names) const {
  const auto last = manifest.increments.empty() ? 0 : manifest.increments.back().sequence;
  for (const auto& name : names) {
    const auto parsed = parse_log_name(name);
    if (!is_log_file(name) || parsed->is_base || parsed->sequence <= last) continue;
    const auto is_named = [&](const Manifest::LogFile& entry) { return entry.name == name; };
    if (std::ranges::any_of(manifest.history, is_named) || folder_->open(name)->size() == 0)
      continue;
    throw Error{
        Errc::corrupt,
        fmt::format("{} does not list {}, which comes after all that it lists; nothing was "
                    "changed. Restore the folder as a whole from a backup. If there is none: the "
                    "line 'file {} seq {} type i' at its end lists the file; or move the file away "
                    "if its writes are not to count",
                    folder_->path_of(std::string{Manifest::file_name}), name, name,
                    parsed->sequence)};
  }
}

/// Gives the last file; null: there is none.
std::shared_ptr<File> AppendLog::load(const Replay& replay) {
  std::shared_ptr<File> last;
  if (manifest_.base) {
    last = load_file(*manifest_.base, manifest_.increments.empty(), replay);
    base_size_ = size_.load();
  }
  for (const auto& entry : manifest_.increments)
    last = load_file(entry, &entry == &manifest_.increments.back(), replay);
  report_.bytes = size_;
  return last;
}

std::shared_ptr<File> AppendLog::load_file(const Manifest::LogFile& entry, bool last,
                                           const Replay& replay) {
  std::shared_ptr<File> file;
  try {
    file = folder_->open(entry.name);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory) throw;
    throw Error{Errc::corrupt,
                fmt::format("{}, which {} lists: {}; restore it from a backup", error.what(),
                            Manifest::file_name, error.code().message())};
  }
  const auto path = folder_->path_of(entry.name);
  const auto size = file->size();
  check_size(entry, *file, last);
  const auto whole = load_log_file(*file, path, last, replay, report_);
  if (whole < size) {
    report_.cut_file = path;
    report_.cut_at = whole;
    report_.cut_bytes = size - whole;
  }
  size_ += whole;
  if (last && !manifest_.increments.empty()) begin_appending(file, whole);
  return file;
}

/// A file that ends at the end of a write is sound as far as it can be read. The last one may have
/// grown since it was listed with a size: what came after it was taken from the list.
void AppendLog::check_size(const Manifest::LogFile& entry, const File& file, bool last) const {
  const auto size = file.size();
  const bool is_base = manifest_.base && &entry == &*manifest_.base;
  std::string begin(std::min<std::uint64_t>(size, key_line_size), '\0');
  file.read(0, begin);
  const bool is_bare = is_base && !last && size == key_line_size && is_key_line(begin);
  const bool fits = !entry.size || size == *entry.size || (last && size > *entry.size);
  if (!is_bare && fits) return;
  throw Error{
      Errc::corrupt,
      fmt::format("{} has {} bytes where {}; nothing was changed. Restore it from a backup",
                  folder_->path_of(entry.name), size,
                  entry.size ? fmt::format("{} lists it with {}", Manifest::file_name, *entry.size)
                             : "a base has more")};
}

void AppendLog::cut(File& torn) {
  if (report_.cut_bytes == 0) return;
  torn.truncate(report_.cut_at);
  torn.sync();
  log(LogLevel::warning,
      fmt::format("{} ended in the middle of a write, as after a crash: cut {} bytes at byte {}",
                  report_.cut_file, report_.cut_bytes, report_.cut_at));
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
  return draft(manifest_.next_increment(folder_->list()));
}

AppendLog::Draft AppendLog::draft_base() { return draft(manifest_.next_base(folder_->list())); }

/// The list has it for outdated until it counts: after a crash it is known to be the log's own.
AppendLog::Draft AppendLog::draft(Manifest::LogFile entry) {
  if (!manifest_.lists_nothing()) {
    Manifest manifest = manifest_;
    manifest.history.push_back(entry);
    bool broken = false;  // the same files count before and after
    replace_manifest(std::move(manifest), broken);
  }
  auto file = folder_->create(entry.name);
  return {std::move(entry), std::move(file)};
}

void AppendLog::discard(Draft draft) noexcept {
  draft.file = nullptr;
  remove_history();
}

void AppendLog::use_increment(const Draft& increment, bool& broken) {
  Manifest manifest;
  manifest.base = manifest_.base;
  manifest.increments = manifest_.increments;
  if (manifest.base) manifest.base->size = base_size_.load();
  if (!manifest.increments.empty()) manifest.increments.back().size = current_size_;
  manifest.increments.push_back(increment.entry);
  manifest.outdate(manifest_);
  replace_manifest(std::move(manifest), broken);
  begin_appending(increment.file, 0);
}

void AppendLog::use_base(const Draft& base, const Draft* increment, bool& broken) {
  Manifest manifest;
  manifest.base = base.entry;
  manifest.base->size = base.file->size();
  manifest.increments.push_back(increment ? increment->entry : manifest_.increments.back());
  manifest.outdate(manifest_);
  replace_manifest(std::move(manifest), broken);
  if (increment) begin_appending(increment->file, 0);
  base_size_ = *manifest_.base->size;
  size_ = base_size_ + current_size_;
  count(metrics().engine_rewrites);
  remove_history();
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

void AppendLog::remove_history() noexcept {
  try {
    const auto names = folder_->list();
    for (const auto& entry : manifest_.history)
      if (std::ranges::find(names, entry.name) != names.end()) folder_->remove(entry.name);
    manifest_.history.clear();
  } catch (const std::system_error& error) {
    log(LogLevel::warning,
        fmt::format("{}; it is not needed and will be removed at the next opening", error.what()));
  }
}

}  // namespace sluice::engine
