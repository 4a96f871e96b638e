#include "redis/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "resp/command_table.hpp"
#include "resp/writer.hpp"

namespace sluice::redis {
namespace {

constexpr std::size_t longest_word = std::size_t{512} << 20;

void check_words(Words words) {
  for (const auto word : words)
    if (word.size() > longest_word)
      throw Error{Errc::bad_argument,
                  fmt::format("a word of a command has at most 512 MiB, this one has {} bytes",
                              word.size())};
}

/// At least what the words take as bulk strings.
std::size_t room_for(Words words) {
  std::size_t room = 0;
  for (const auto word : words) room += word.size() + 16;
  return room;
}

/// Reads, or asks for something that is nobody's data (PING, ECHO, TIME).
bool does_no_harm(const resp::CommandSpec* spec) {
  constexpr std::uint32_t harm = resp::flag_write | resp::flag_admin | resp::flag_pubsub |
                                 resp::flag_noscript | resp::flag_stateful | resp::flag_blocking |
                                 resp::flag_movablekeys | resp::flag_container;
  return spec && (spec->has(resp::flag_readonly) || (spec->flags & harm) == 0);
}

}  // namespace

void Request::add(Words command) {
  if (command.empty()) throw Error{Errc::bad_argument, "a command has at least one word"};
  check_words(command);
  resp::append_command(bytes_, command);
  ++commands_;
  only_reads_ = only_reads_ && does_no_harm(resp::find_command(command));
}

void Request::add(const Script& script, Words keys, Words args) {
  check_words(keys);
  check_words(args);
  const std::size_t words = 3 + keys.size() + args.size();
  const auto begins = bytes_.size();
  // A batch grows by doubling; a single call asks for its room once.
  if (kind_ == Kind::call) bytes_.reserve(begins + 80 + room_for(keys) + room_for(args));
  resp::append_command_header(bytes_, words);
  resp::append_bulk(bytes_, "EVALSHA");
  resp::append_bulk(bytes_, script.sha1);
  const auto tail = bytes_.size();
  const fmt::format_int key_count{keys.size()};
  resp::append_bulk(bytes_, {key_count.data(), key_count.size()});
  for (const auto key : keys) resp::append_bulk(bytes_, key);
  for (const auto arg : args) resp::append_bulk(bytes_, arg);
  bool is_first = true;
  if (kind_ == Kind::batch) {
    is_first = std::find(sha1s_.begin(), sha1s_.end(), script.sha1) == sha1s_.end();
    if (is_first) sha1s_.push_back(script.sha1);
  }
  scripts_.push_back({begins, tail, words, script.text, script.sha1, is_first});
  ++commands_;
  only_reads_ = false;
}

void Request::append_to(std::string& out, KnownScripts& known) const {
  std::size_t copied = 0;
  for (const auto& call : scripts_) {
    if (kind_ == Kind::batch ? !call.is_first : known.has(call.sha1)) continue;
    out.append(bytes_, copied, call.begins - copied);
    resp::append_command_header(out, call.words);
    resp::append_bulk(out, "EVAL");
    resp::append_bulk(out, call.text);
    known.add(call.sha1);
    copied = call.tail;
  }
  out.append(bytes_, copied);
}

namespace {

using std::chrono::milliseconds;

bool is_word(std::string_view word, std::string_view upper) {
  if (word.size() != upper.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if ((static_cast<unsigned char>(word[i]) & 0xdf) != static_cast<unsigned char>(upper[i]))
      return false;
  return true;
}

/// A number the server will refuse counts as 0: its error is the answer.
milliseconds time_of(std::string_view text, double unit_ms) {
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 0) return milliseconds{0};
  const double ms = count * unit_ms;
  if (ms == 0 || ms > 1e15) return milliseconds::max();
  return milliseconds{static_cast<std::int64_t>(ms) + 1};
}

/// Where each blocking command says how long: behind an option, or at a fixed place.
struct TimeoutRow {
  std::string_view command;
  std::string_view option;  ///< "BLOCK": the word behind it; empty: by position
  int position;  ///< of the word, negative from the end; of the first that may be the option
  double unit_ms;
};

constexpr TimeoutRow timeout_rows[] = {
    {"XREAD", "BLOCK", 1, 1},     {"XREADGROUP", "BLOCK", 4, 1},  // a group may be called BLOCK
    {"BLPOP", "", -1, 1000},      {"BRPOP", "", -1, 1000},       {"BLMOVE", "", -1, 1000},
    {"BRPOPLPUSH", "", -1, 1000}, {"BZPOPMIN", "", -1, 1000},    {"BZPOPMAX", "", -1, 1000},
    {"BLMPOP", "", 1, 1000},      {"BZMPOP", "", 1, 1000},
};

/// The word that says how long; empty: the command does not wait.
std::string_view timeout_word(const TimeoutRow& row, Words command) {
  if (row.option.empty()) {
    const auto at = row.position < 0 ? std::ssize(command) + row.position : row.position;
    return at < 1 || at >= std::ssize(command) ? "" : command[static_cast<std::size_t>(at)];
  }
  for (auto i = static_cast<std::size_t>(row.position); i + 1 < command.size(); ++i) {
    if (is_word(command[i], "STREAMS")) break;  // keys and ids from here on
    if (is_word(command[i], row.option)) return command[i + 1];
  }
  return "";
}

[[noreturn]] void refuse(Words command, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("{} {}", command.front(), why)};
}

}  // namespace

Needs needs_of(Words command) {
  if (command.empty()) throw Error{Errc::bad_argument, "a command has at least one word"};
  const auto* const spec = resp::find_command(command);
  if (!spec) return {};
  if (spec->has(resp::flag_stateful))
    refuse(command, spec->has(resp::flag_pubsub)
                        ? "is for one connection, which all callers share here; use Store::listen()"
                        : "changes the state of a connection, which all callers share here; use a "
                          "script or a Batch");
  if (spec->name == "wait" || spec->name == "waitaof")
    refuse(command, "speaks of the writes of one connection, which all callers share here");
  if (!spec->has(resp::flag_blocking)) return {};
  for (const auto& row : timeout_rows) {
    if (!is_word(command.front(), row.command)) continue;
    const auto word = timeout_word(row, command);
    return word.empty() ? Needs{} : Needs{true, time_of(word, row.unit_ms)};
  }
  return {true, milliseconds{0}};  // known to block, but not for how long: the time of the call
}

}  // namespace sluice::redis
