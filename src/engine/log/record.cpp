#include "engine/log/record.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "resp/writer.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t longest_word = std::size_t{512} << 20;
constexpr std::size_t most_words = std::numeric_limits<int>::max();
constexpr std::size_t longest_comment = 1024;

/// Walks over the bytes of one record.
class Scanner {
 public:
  explicit Scanner(std::string_view bytes) : bytes_(bytes) {}

  /// "<kind><digits>\r\n"; empty: see result().
  std::optional<std::size_t> number(char kind, std::size_t most) {
    if (at_ == bytes_.size()) return incomplete();
    if (bytes_[at_] != kind)
      return damaged(kind == '*' ? "no '*' where a command begins" : "no '$' where a word begins");
    std::size_t value = 0;
    std::size_t place = at_ + 1;
    for (; place < bytes_.size() && bytes_[place] >= '0' && bytes_[place] <= '9'; ++place) {
      value = value * 10 + static_cast<std::size_t>(bytes_[place] - '0');
      if (value > most) return damaged("a length beyond every limit");
    }
    if (place == bytes_.size()) return incomplete();
    if (place == at_ + 1) return damaged("a length without digits");
    at_ = place;
    if (!line_end()) return std::nullopt;
    return value;
  }

  std::optional<std::string_view> word(std::size_t size) {
    if (bytes_.size() - at_ < size) {
      incomplete();
      return std::nullopt;
    }
    const auto text = bytes_.substr(at_, size);
    at_ += size;
    if (!line_end()) return std::nullopt;
    return text;
  }

  std::size_t at() const noexcept { return at_; }
  const ParsedRecord& result() const noexcept { return result_; }

 private:
  bool line_end() {
    for (const char wanted : {'\r', '\n'}) {
      if (at_ == bytes_.size()) {
        incomplete();
        return false;
      }
      if (bytes_[at_] != wanted) {
        damaged("no line end after a length or word");
        return false;
      }
      ++at_;
    }
    return true;
  }

  std::nullopt_t incomplete() {
    result_ = {ParsedRecord::Kind::incomplete, 0, ""};
    return std::nullopt;
  }
  std::nullopt_t damaged(const char* why) {
    result_ = {ParsedRecord::Kind::damaged, at_, why};
    return std::nullopt;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  ParsedRecord result_;
};

ParsedRecord parse_comment(std::string_view bytes) {
  const auto end = bytes.substr(0, longest_comment).find('\n');
  if (end != std::string_view::npos) return {ParsedRecord::Kind::comment, end + 1, ""};
  if (bytes.size() < longest_comment) return {};
  return {ParsedRecord::Kind::damaged, 0, "a comment without end"};
}

}  // namespace

ParsedRecord parse_record(std::string_view bytes, std::vector<std::string_view>& words) {
  words.clear();
  if (bytes.empty()) return {};
  if (bytes.front() == '#') return parse_comment(bytes);
  Scanner scanner{bytes};
  const auto count = scanner.number('*', most_words);
  if (!count) return scanner.result();
  if (*count == 0) return {ParsedRecord::Kind::damaged, 0, "a command without words"};
  for (std::size_t i = 0; i < *count; ++i) {
    const auto size = scanner.number('$', longest_word);
    if (!size) return scanner.result();
    const auto word = scanner.word(*size);
    if (!word) return scanner.result();
    words.push_back(*word);
  }
  return {ParsedRecord::Kind::record, scanner.at(), ""};
}

bool hides_records(std::string_view incomplete) {
  std::vector<std::string_view> words;
  const auto next_line = [&](std::size_t from) { return incomplete.find("\r\n*", from); };
  for (auto line = next_line(0); line != std::string_view::npos; line = next_line(line + 1)) {
    auto rest = incomplete.substr(line + 2);
    auto parsed = parse_record(rest, words);
    if (parsed.kind != ParsedRecord::Kind::record) continue;
    while (parsed.kind == ParsedRecord::Kind::record ||
           parsed.kind == ParsedRecord::Kind::comment) {
      rest.remove_prefix(parsed.size);
      parsed = parse_record(rest, words);
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
