#include "proxy/config/command_rule.hpp"

#include <algorithm>

#include "base/integer.hpp"
#include "resp/letters.hpp"

namespace sluice::proxy::config {
namespace {

constexpr int farthest = 120;  // no command has its keys behind so many words

/// The words of a text, one after another.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const auto word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  bool take(std::string_view word) {
    auto before = rest_;
    if (next() == word) return true;
    rest_ = before;
    return false;
  }
  /// 0: it is not right.
  int position(bool from_end = false) {
    const auto number = parse_integer<int>(next()).value_or(0);
    return number > farthest || number < (from_end ? -farthest : 0) ? 0 : number;
  }

 private:
  std::string_view rest_;
};

bool read_keys(Words& words, resp::CommandSpec& spec) {
  if (words.take("none") || words.take("whole")) return true;
  if (words.take("behind")) {
    spec.rule = resp::KeyRule::behind;
    spec.keyword = words.next();
    return !spec.keyword.empty();
  }
  if (words.take("key")) {
    spec.first_key = spec.last_key = words.position();
    spec.key_step = 1;
  } else if (words.take("keys")) {
    spec.first_key = words.position();
    spec.last_key = words.position(true);
    spec.key_step = words.position();
    return spec.first_key != 0 && spec.last_key != 0 && spec.key_step != 0;
  }
  if (words.take("count")) {
    spec.rule = resp::KeyRule::counted;
    spec.rule_at = static_cast<std::uint8_t>(words.position());
    return spec.rule_at != 0;
  }
  return spec.first_key != 0;
}

}  // namespace

std::optional<resp::CommandSpec> spec_of(const CommandRule& rule) {
  Words words{rule.text};
  resp::CommandSpec spec{.name = rule.name, .arity = -1, .flags = resp::flag_write};
  if (!read_keys(words, spec)) return std::nullopt;
  spec.arity = -1 - std::max<int>(spec.first_key, spec.rule_at);
  if (words.take("read")) spec.flags = resp::flag_readonly;
  if (words.take("blocking")) spec.flags |= resp::flag_blocking;
  if (!words.next().empty()) return std::nullopt;
  return spec;
}

bool is_whole(const CommandRule& rule) noexcept { return rule.text.starts_with("whole"); }

bool is_rule_for(const CommandRule& rule, std::string_view command) noexcept {
  std::string_view name = rule.name;
  if (!name.ends_with('*')) return resp::is_word(command, name);
  name.remove_suffix(1);
  return resp::is_word(command.substr(0, name.size()), name);
}

}  // namespace sluice::proxy::config
