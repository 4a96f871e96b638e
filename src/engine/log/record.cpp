#include "engine/log/record.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "resp/writer.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t longest_comment = 1024;

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

bool hides_records(std::string_view incomplete) {
  const auto next_line = [&](std::size_t from) { return incomplete.find("\r\n*", from); };
  for (auto line = next_line(0); line != std::string_view::npos; line = next_line(line + 1)) {
    resp::RequestParser parser{record_limits()};
    auto rest = incomplete.substr(line + 2);
    auto parsed = parse_record(rest, parser);
    if (parsed.kind != ParsedRecord::Kind::record) continue;
    while (parsed.kind == ParsedRecord::Kind::record ||
           parsed.kind == ParsedRecord::Kind::comment) {
      rest.remove_prefix(parsed.size);
      parsed = parse_record(rest, parser);
    }
    if (parsed.kind == ParsedRecord::Kind::incomplete) return true;
  }
  return false;
}

void append_execution(std::string& out, const std::vector<std::vector<std::string>>& effects) {
  const auto is_select = [](const std::vector<std::string>& effect) {
    return effect.front() == "SELECT";
  };
  const bool together = std::ranges::count_if(effects, std::not_fn(is_select)) > 1;
  std::vector<std::string_view> words;
  if (together) resp::append_command(out, {"MULTI"});
  for (const auto& effect : effects) {
    words.assign(effect.begin(), effect.end());
    resp::append_command(out, words);
  }
  if (together) resp::append_command(out, {"EXEC"});
}

}  // namespace sluice::engine
