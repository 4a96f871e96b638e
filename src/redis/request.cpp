#include "redis/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/request_parser.hpp"
#include "resp/server_words.hpp"
#include "resp/writer.hpp"
#include "store/reply_error.hpp"

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

/// Reads, or asks for something that is no data (PING, ECHO, TIME).
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
  const auto* const spec = resp::find_command(command);
  only_reads_ = only_reads_ && does_no_harm(spec);
  runs_foreign_script_ |= resp::runs_script(spec);
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
  scripts_.push_back({begins, tail, words, script, is_first});
  runs_foreign_script_ |= !script.is_of_sluice;
  ++commands_;
  only_reads_ = false;
}

void Request::append_to(std::string& out, KnownScripts& known) const {
  std::size_t copied = 0;
  for (const auto& call : scripts_) {
    if (kind_ == Kind::batch ? !call.is_first : known.has(call.script.sha1)) continue;
    out.append(bytes_, copied, call.begins - copied);
    resp::append_command_header(out, call.words);
    resp::append_bulk(out, "EVAL");
    resp::append_bulk(out, call.script.text);
    known.add(call.script.sha1);
    copied = call.tail;
  }
  out.append(bytes_, copied);
}

std::size_t Request::append_lessons(std::string& out, const KnownScripts& known) const {
  std::size_t lessons = 0;
  for (const auto& call : scripts_) {
    if (!call.is_first || known.has(call.script.sha1)) continue;
    const std::string_view words[] = {"SCRIPT", "LOAD", call.script.text};
    resp::append_command(out, words);
    ++lessons;
  }
  return lessons;
}

Request Request::asking() const {
  Request both{Kind::batch};
  static constexpr std::string_view asking[] = {"ASKING"};
  both.add(asking);
  const auto begin = both.bytes_.size();
  both.bytes_ += bytes_;
  for (auto call : scripts_) {
    call.begins += begin;
    call.tail += begin;
    call.is_first = true;
    both.scripts_.push_back(std::move(call));
  }
  both.commands_ += commands_;
  both.only_reads_ = only_reads_;
  both.runs_foreign_script_ = runs_foreign_script_;
  return both;
}

namespace {

std::vector<std::string_view> words_of(std::string_view requests, std::size_t nth) {
  constexpr std::size_t any = std::size_t{1} << 40;
  resp::RequestParser parser{{.bulk = any, .words = any, .line = 64, .whole = any}};
  while (parser.parse(requests) == resp::RequestParser::State::complete) {
    if (nth-- == 0) return {parser.words().begin(), parser.words().end()};
    requests.remove_prefix(parser.size());
  }
  return {};
}

/// The keys of an EVALSHA.
Words keys_of_script(Words words) {
  constexpr std::size_t first_key = 3;  // behind EVALSHA, the SHA-1 and the number of keys
  if (words.size() <= first_key) return {};
  return words.subspan(first_key, leading_number<std::size_t>(words[first_key - 1]));
}

}  // namespace

Error Request::error_of(std::string_view reply) const {
  const auto words = words_of(bytes_, 0);
  if (scripts_.empty()) return error_of_command(reply, words);
  return error_of_script(reply, scripts_.front().script, keys_of_script(words));
}

std::string Request::name(std::size_t nth) const {
  const auto words = words_of(bytes_, nth);
  const auto called = std::ranges::find_if(scripts_, [&](const Call& call) {
    return words.size() > 1 && words[0] == "EVALSHA" && words[1] == call.script.sha1;
  });
  if (called == scripts_.end()) return name_of_command(words);
  const auto keys = keys_of_script(words);
  return name_of_call(called->script.name, keys.empty() ? std::string_view{} : keys.front());
}

namespace {

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
  const auto wait = resp::waiting_time(*spec, command);
  return wait ? Needs{true, *wait} : Needs{};
}

}  // namespace sluice::redis
