#include "engine/log/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/integer.hpp"
#include "resp/writer.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t longest_comment = 1024;
constexpr std::string_view timestamp_mark = "#TS:";

ParsedRecord parse_comment(std::string_view bytes) {
  const auto end = bytes.substr(0, longest_comment).find('\n');
  if (end != std::string_view::npos) return {ParsedRecord::Kind::comment, end + 1, ""};
  if (bytes.size() < longest_comment) return {};
  return {ParsedRecord::Kind::damaged, 0, "a comment without end"};
}

}  // namespace

resp::RequestLimits record_limits() noexcept {
  resp::RequestLimits limits;  // a word as in Redis; as many as there may be
  limits.words = std::numeric_limits<int>::max();
  limits.whole = std::numeric_limits<std::size_t>::max();
  return limits;
}

ParsedRecord parse_record(std::string_view bytes, resp::RequestParser& parser) {
  using State = resp::RequestParser::State;
  if (bytes.empty()) return {};
  if (bytes.front() == '#') return parse_comment(bytes);
  if (bytes.front() != '*')
    return {ParsedRecord::Kind::damaged, 0, "no '*' where a command begins"};
  const auto state = parser.parse(bytes);
  if (state == State::incomplete) return {};
  if (state == State::bad) return {ParsedRecord::Kind::damaged, parser.error_at(), parser.error()};
  if (parser.words().empty()) return {ParsedRecord::Kind::damaged, 0, "a command without words"};
  return {ParsedRecord::Kind::record, parser.size(), ""};
}

void append_timestamp(std::string& out, std::int64_t second) {
  out += fmt::format("{}{}\r\n", timestamp_mark, second);
}

std::optional<std::int64_t> timestamp_of(std::string_view comment) noexcept {
  if (!comment.starts_with(timestamp_mark) || !comment.ends_with("\r\n")) return std::nullopt;
  comment.remove_prefix(timestamp_mark.size());
  return sluice::parse_integer<std::int64_t>(comment.substr(0, comment.size() - 2));
}

bool may_become_timestamp(std::string_view bytes) noexcept {
  if (timestamp_mark.starts_with(bytes)) return true;
  if (!bytes.starts_with(timestamp_mark)) return false;
  bytes.remove_prefix(timestamp_mark.size());
  bytes.remove_prefix(std::min(bytes.find_first_not_of("-0123456789"), bytes.size()));
  return std::string_view{"\r\n"}.starts_with(bytes);
}

void append_execution(std::string& out, const std::vector<std::vector<std::string>>& effects) {
  const auto is_select = [](const std::vector<std::string>& effect) {
    return effect.front() == select_of_redis;
  };
  const bool together = std::ranges::count_if(effects, std::not_fn(is_select)) > 1;
  std::vector<std::string_view> words;
  if (together) resp::append_command(out, {"MULTI"});
  for (const auto& effect : effects) {
    words.assign(effect.begin(), effect.end());
    if (is_select(effect)) words.front() = our_select;
    resp::append_command(out, words);
  }
  if (together) resp::append_command(out, {"EXEC"});
}

}  // namespace sluice::engine
