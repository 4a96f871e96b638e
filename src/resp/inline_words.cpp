#include "resp/inline_words.hpp"

namespace sluice::resp {
namespace {

constexpr bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr char escaped(char c) noexcept {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
  }
}

class Line {
 public:
  Line(std::string_view line, std::string& text) : rest_(line), text_(text) {}

  bool skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  bool word() {
    while (!rest_.empty() && !is_blank(rest_.front())) {
      const char c = take();
      if (c == '"' || c == '\'') {
        if (!quoted(c)) return false;
        return rest_.empty() || is_blank(rest_.front());
      }
      text_ += c;
    }
    return true;
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool quoted(char quote) {
    while (!rest_.empty()) {
      const char c = take();
      if (c == quote) return true;
      if (c != '\\' || rest_.empty())
        text_ += c;
      else if (quote == '"')
        text_ += escape();
      else
        text_ += rest_.front() == '\'' ? take() : c;
    }
    return false;
  }

  char escape() {
    const char c = take();
    if (c == 'x' && rest_.size() >= 2 && hex_digit(rest_[0]) >= 0 && hex_digit(rest_[1]) >= 0)
      return static_cast<char>(hex_digit(take()) * 16 + hex_digit(take()));
    return escaped(c);
  }

  std::string_view rest_;
  std::string& text_;
};

}  // namespace

bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& words) {
  line = line.substr(0, line.find('\0'));
  text.clear();
  text.reserve(line.size());  // words get no longer by being unquoted, so the views stay good
  Line rest{line, text};
  while (rest.skip_blanks()) {
    const auto begin = text.size();
    if (!rest.word()) return false;
    words.emplace_back(text.data() + begin, text.size() - begin);
  }
  return true;
}

}  // namespace sluice::resp
