#include "engine/log/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

using LogFile = Manifest::LogFile;

constexpr std::string_view stem = "appendonly.aof";

[[noreturn]] void refuse(std::size_t line, std::string_view why) {
  throw Error{
      Errc::corrupt,
      fmt::format("line {} of {}: {}; restore the file from a backup, or list the log's files "
                  "in it as Redis 7 does",
                  line, Manifest::file_name, why)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::map<std::string_view, std::string_view> fields_of(std::string_view line, std::size_t number) {
  const auto words = split(line, ' ');
  if (words.size() < 6 || words.size() % 2 != 0) refuse(number, "not pairs of a word and a value");
  std::map<std::string_view, std::string_view> fields;
  for (std::size_t i = 0; i < words.size(); i += 2) fields[words[i]] = words[i + 1];
  for (const auto* const wanted : {"file", "seq", "type"})
    if (!fields.contains(wanted)) refuse(number, fmt::format("'{}' is missing", wanted));
  return fields;
}

LogFile entry_of(const std::map<std::string_view, std::string_view>& fields, std::size_t line) {
  LogFile entry{.name = std::string{fields.at("file")}};
  if (entry.name.find('/') != std::string::npos || entry.name == "." || entry.name == "..")
    refuse(line, "a file name with a path");
  const auto digits = fields.at("seq");
  entry.sequence = parse_integer<decltype(entry.sequence)>(digits).value_or(0);
  if (entry.sequence == 0) refuse(line, fmt::format("'{}' is not a sequence number", digits));
  if (fields.contains("size")) {
    entry.size = parse_integer<std::uint64_t>(fields.at("size"));
    if (!entry.size) refuse(line, fmt::format("'{}' is not a size", fields.at("size")));
  }
  return entry;
}

void add(Manifest& manifest, std::string_view text, std::size_t line) {
  const auto fields = fields_of(text, line);
  LogFile entry = entry_of(fields, line);
  const auto type = fields.at("type");
  if (type == "b") {
    if (manifest.base) refuse(line, "a second base file");
    manifest.base = std::move(entry);
  } else if (type == "i") {
    if (!manifest.increments.empty() && manifest.increments.back().sequence >= entry.sequence)
      refuse(line, "increments out of order");
    manifest.increments.push_back(std::move(entry));
  } else if (type == "h") {
    manifest.history.push_back(std::move(entry));
  } else {
    refuse(line, fmt::format("unknown type '{}'", type));
  }
}

std::string line_of(const LogFile& entry, char type) {
  const auto size = entry.size ? fmt::format(" size {}", *entry.size) : "";
  return fmt::format("file {} seq {} type {}{}\n", entry.name, entry.sequence, type, size);
}

LogFile next(std::uint64_t sequence, std::string_view type, const std::vector<std::string>& taken) {
  for (;; ++sequence) {
    auto name = fmt::format("{}.{}.{}.aof", stem, sequence, type);
    if (std::ranges::find(taken, name) == taken.end()) return {std::move(name), sequence};
  }
}

}  // namespace

LogFile Manifest::next_base(const std::vector<std::string>& taken) const {
  return next(base ? base->sequence + 1 : 1, "base", taken);
}

LogFile Manifest::next_increment(const std::vector<std::string>& taken) const {
  return next(increments.empty() ? 1 : increments.back().sequence + 1, "incr", taken);
}

void Manifest::outdate(const Manifest& old) {
  const auto add = [&](const LogFile& entry) {
    const auto named = [&](const LogFile& other) { return entry.name == other.name; };
    if ((!base || !named(*base)) && std::ranges::none_of(increments, named))
      history.push_back(entry);
  };
  if (old.base) add(*old.base);
  std::ranges::for_each(old.increments, add);
  std::ranges::for_each(old.history, add);
}

Manifest parse_manifest(std::string_view text) {
  Manifest manifest;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    if (end == std::string_view::npos) refuse(number, "the last line has no end");
    const auto line = text.substr(0, end);
    if (line.empty()) refuse(number, "an empty line");
    if (line.front() != '#') add(manifest, line, number);
    text.remove_prefix(end + 1);
  }
  if (!manifest.base && manifest.increments.empty()) refuse(number, "it lists no file");
  return manifest;
}

std::string to_text(const Manifest& manifest) {
  std::string text;
  if (manifest.base) text += line_of(*manifest.base, 'b');
  for (const auto& entry : manifest.history) text += line_of(entry, 'h');
  for (const auto& entry : manifest.increments) text += line_of(entry, 'i');
  return text;
}

std::optional<LogName> parse_log_name(std::string_view name) {
  for (const std::string_view kind : {".base.aof", ".base.rdb", ".incr.aof"}) {
    if (!name.ends_with(kind)) continue;
    name.remove_suffix(kind.size());
    const auto dot = std::min(name.rfind('.'), name.size() - 1);
    const auto sequence = parse_integer<std::uint64_t>(name.substr(dot + 1));
    if (dot > 0 && sequence) return LogName{name.substr(0, dot), *sequence, kind[1] == 'b'};
    break;
  }
  return std::nullopt;
}

bool is_log_file(std::string_view name) {
  const auto parsed = parse_log_name(name);
  return parsed && parsed->stem == stem;
}

Error without_manifest(const std::string& folder, std::string_view stem,
                       const std::vector<std::string>& names) {
  std::vector<std::pair<LogName, std::string_view>> files;
  for (const auto& name : names)
    if (const auto parsed = parse_log_name(name); parsed && parsed->stem == stem)
      files.emplace_back(*parsed, name);
  std::ranges::sort(files, {}, [](const auto& file) {
    return std::pair{!file.first.is_base, file.first.sequence};
  });
  std::string lines;
  for (const auto& [name, text] : files)
    lines +=
        fmt::format(" '{}'", line_of({std::string{text}, name.sequence}, name.is_base ? 'b' : 'i'));
  std::erase(lines, '\n');
  return Error{
      Errc::corrupt,
      fmt::format("{}/{}.manifest, which says what counts of the files beside it, is missing; "
                  "nothing was changed. Restore it from a backup. If there is none, write it anew, "
                  "with a line for each file that counts:{}. What a rewrite had replaced does not "
                  "count: list one base at most, and the increments after it. Start no "
                  "redis-server there before: it would begin anew, and overwrite the files",
                  folder, stem, lines)};
}

}  // namespace sluice::engine
