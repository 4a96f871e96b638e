#include "server/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/json.hpp"
#include "server/journal.lua.hpp"
#include "sluice/log.hpp"

namespace sluice::server {
namespace {

/// The fields of an entry as they stand in the stream.
struct JournalField {
  std::string_view name;
  std::string JournalEntry::*value;
};
constexpr std::array journal_fields{JournalField{"operator", &JournalEntry::by},
                                    JournalField{"action", &JournalEntry::action},
                                    JournalField{"target", &JournalEntry::target},
                                    JournalField{"detail", &JournalEntry::detail},
                                    JournalField{"order", &JournalEntry::order},
                                    JournalField{"amount", &JournalEntry::amount},
                                    JournalField{"currency", &JournalEntry::currency},
                                    JournalField{"outcome", &JournalEntry::outcome}};

void add_fields(std::vector<std::string_view>& words, const JournalEntry& entry) {
  for (const auto& field : journal_fields)
    if (!(entry.*field.value).empty()) words.insert(words.end(), {field.name, entry.*field.value});
}

/// What others chose is in quotes, so that no text of theirs makes a line of its own.
std::string line_of(const JournalEntry& entry) {
  return fmt::format("operator '{}': {} {} {}{}: {}", entry.by, entry.action,
                     Json{entry.target}.text(), Json{entry.detail}.text(),
                     entry.order.empty() ? "" : " of order " + Json{entry.order}.text(),
                     Json{entry.outcome}.text());
}

JournalEntry entry_of(const Value& value) {
  const auto& parts = value.as_items();
  JournalEntry entry{.id = parts.at(0).as_text()};
  auto begun = entry.id;
  const auto& fields = parts.at(1).as_items();
  for (std::size_t at = 0; at + 1 < fields.size(); at += 2) {
    if (fields[at].as_text() == "begun") begun = fields[at + 1].as_text();
    const auto* const field =
        std::ranges::find(journal_fields, fields[at].as_text(), &JournalField::name);
    if (field != journal_fields.end()) entry.*field->value = fields[at + 1].as_text();
  }
  const std::chrono::milliseconds at{leading_number<std::int64_t>(begun)};
  entry.at = WallTime{at};
  return entry;
}

}  // namespace

bool is_stream_id(std::string_view text) noexcept {
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  const auto dash = text.find('-');
  if (dash == text.npos) return false;
  const auto time = parse_integer<std::uint64_t>(text.substr(0, dash));
  const auto count = parse_integer<std::uint64_t>(text.substr(dash + 1));
  if (!time || !count) return false;
  return (*time > 0 || *count > 0) && (*time < last || *count < last);
}

std::string Journal::begin(const JournalEntry& entry) {
  const auto limit = fmt::to_string(most);
  std::vector<std::string_view> words{"XADD", key, "MAXLEN", limit, "*"};
  add_fields(words, entry);
  return store_.run(Words{words}).get().as_text();
}

void Journal::end(const std::string& id, const JournalEntry& entry) noexcept try {
  log(LogLevel::info, line_of(entry));
  const auto limit = fmt::to_string(most);
  const std::vector<std::string_view> keys{key};
  std::vector<std::string_view> args{id, limit};
  add_fields(args, entry);
  store_.run(scripts::server_end_entry, Words{keys}, Words{args}).get();
} catch (const std::exception& failure) {
  log(LogLevel::error,
      fmt::format("the journal has no outcome of entry {}: {}", id, failure.what()));
}

void Journal::miss(const JournalEntry& entry, std::string_view why) noexcept try {
  log(LogLevel::error, fmt::format("{}; the journal does not have it: {}", line_of(entry), why));
} catch (const std::exception&) {
  log(LogLevel::error, "the journal misses an entry");
}

std::vector<JournalEntry> Journal::read(const std::string& after, std::size_t count) {
  const auto from = after.empty() ? std::string{"+"} : "(" + after;
  const auto limit = fmt::to_string(count);
  const auto page = store_.run({"XREVRANGE", key, from, "-", "COUNT", limit}).get();
  std::vector<JournalEntry> entries;
  for (const auto& entry : page.as_items()) entries.push_back(entry_of(entry));
  return entries;
}

}  // namespace sluice::server
