// What the words of a command say: where its keys are, and how long it may wait.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"

namespace sluice::resp {
namespace {

using Words = std::span<const std::string_view>;
using Positions = std::vector<std::size_t>;

void add_range(std::size_t first, std::size_t end, std::size_t step, Positions& positions) {
  for (auto at = first; at < end; at += step) positions.push_back(at);
}

/// first_key, last_key, key_step. The arity has been checked, but a last key that is counted from
/// the end may still lie before the first: then there is none.
void fixed(const CommandSpec& spec, std::size_t words, Positions& positions) {
  if (spec.first_key == 0) return;
  const auto last =
      spec.last_key >= 0 ? spec.last_key : static_cast<std::ptrdiff_t>(words) + spec.last_key;
  const auto end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(last + 1, 0)), words);
  add_range(static_cast<std::size_t>(spec.first_key), end, static_cast<std::size_t>(spec.key_step),
            positions);
}

bool without_keys(const CommandSpec&, Words, Positions&) { return true; }

bool counted(const CommandSpec& spec, Words words, Positions& positions) {
  if (spec.rule_at >= words.size()) return false;
  const auto count = parse_integer<std::size_t>(words[spec.rule_at]);
  const std::size_t first = spec.rule_at + 1U;
  const auto step = static_cast<std::size_t>(std::max(spec.key_step, 1));
  if (!count || *count > (words.size() - first) / step ||
      (*count == 0 && !spec.has(flag_no_mandatory_keys)))
    return false;
  add_range(first, first + *count * step, step, positions);
  return true;
}

/// A word that is an option, and how many words belong to it.
struct Option {
  std::string_view word;
  std::size_t values;
};

/// Steps from `at` over the options it knows, `most` of them, to the first other word or the end.
std::size_t skip_options(Words words, std::size_t at, std::span<const Option> options,
                         std::size_t most = SIZE_MAX) {
  for (; at < words.size() && most > 0; --most) {
    const auto known =
        std::ranges::find_if(options, [&](const Option& o) { return is_word(words[at], o.word); });
    if (known == options.end()) break;
    at += 1 + known->values;
  }
  return std::min(at, words.size());
}

/// Of XREAD and XREADGROUP, before STREAMS. What they are told (a group may be named "streams", a
/// consumer "block") is stepped over, as Redis does.
constexpr std::array stream_options{Option{"block", 1}, Option{"claim", 1}, Option{"count", 1},
                                    Option{"group", 2}, Option{"noack", 0}};

bool streams(const CommandSpec&, Words words, Positions& positions) {
  const auto at = skip_options(words, 1, stream_options);
  if (at == words.size() || !is_word(words[at], "streams")) return false;
  const auto left = words.size() - at - 1;  // keys, then as many ids
  if (left == 0 || left % 2 != 0) return false;
  add_range(at + 1, at + 1 + left / 2, 1, positions);
  return true;
}

bool stored(const CommandSpec& spec, Words words, Positions& positions) {
  for (std::size_t at = spec.rule_at; at + 1 < words.size(); ++at)
    if (is_word(words[at], "store") || is_word(words[at], "storedist")) positions.push_back(++at);
  return true;
}

/// Of several STORE the last counts, as in Redis.
bool sorted(const CommandSpec& spec, Words words, Positions& positions) {
  static constexpr std::array options{Option{"limit", 2}, Option{"get", 1}, Option{"by", 1}};
  std::size_t found = 0;
  for (std::size_t at = spec.rule_at; (at = skip_options(words, at, options)) + 1 < words.size();
       ++at)
    if (is_word(words[at], "store")) found = ++at;
  if (found != 0) positions.push_back(found);
  return true;
}

bool migrated(const CommandSpec& spec, Words words, Positions& positions) {
  static constexpr std::array options{Option{"copy", 0}, Option{"replace", 0}, Option{"auth", 1},
                                      Option{"auth2", 2}};
  constexpr std::size_t first_option = 6;
  if (!words[spec.rule_at].empty()) return true;
  const auto at = skip_options(words, first_option, options);
  if (at == words.size() || !is_word(words[at], "keys")) return false;
  positions.clear();
  add_range(at + 1, words.size(), 1, positions);
  return true;
}

bool behind(const CommandSpec& spec, Words words, Positions& positions) {
  const auto keyword = std::ranges::find_if(
      words, [&](std::string_view word) { return is_word(word, spec.keyword); });
  add_range(static_cast<std::size_t>(keyword - words.begin()) + 1, words.size(), 1, positions);
  return !positions.empty();
}

using Rule = bool (*)(const CommandSpec&, Words, Positions&);
constexpr std::array<Rule, 7> rules{without_keys, counted,  streams, stored,
                                    sorted,       migrated, behind};  // by KeyRule

using std::chrono::milliseconds;

/// A number that the server will refuse counts as 0: its error is the answer.
milliseconds time_of(std::string_view text, double unit_ms) {
  const auto count = parse_decimal(text);
  if (!count || !(*count >= 0)) return milliseconds{0};
  const double ms = *count * unit_ms;
  if (ms == 0 || ms > 1e15) return milliseconds::max();
  return milliseconds{static_cast<std::int64_t>(ms) + 1};
}

}  // namespace

std::optional<milliseconds> waiting_time(const CommandSpec& spec, Words words) {
  using Form = TimeoutRule::Form;
  if (spec.timeout.form == Form::none) return milliseconds{0};
  const auto at = place_of_waiting_time(spec, words);
  if (!at) return std::nullopt;
  return time_of(words[*at], spec.timeout.form == Form::seconds ? 1000 : 1);
}

std::optional<std::size_t> place_of_waiting_time(const CommandSpec& spec, Words words) {
  using Form = TimeoutRule::Form;
  if (spec.timeout.form == Form::none) return std::nullopt;
  if (spec.timeout.form == Form::seconds) {
    const auto at = spec.timeout.at < 0 ? std::ssize(words) + spec.timeout.at : spec.timeout.at;
    if (at < 1 || at >= std::ssize(words)) return std::nullopt;
    return static_cast<std::size_t>(at);
  }
  std::optional<std::size_t> block;  // of several the last counts
  for (std::size_t at = 1; at + 1 < words.size();) {
    if (is_word(words[at], "block")) block = at + 1;
    const auto next = skip_options(words, at, stream_options, 1);
    if (next == at) break;
    at = next;
  }
  return block;
}

std::string waiting_text(const CommandSpec& spec, milliseconds time) {
  return spec.timeout.form == TimeoutRule::Form::seconds
             ? fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000)
             : std::to_string(time.count());
}

bool keys_of(const CommandSpec& spec, Words words, Positions& positions) {
  positions.clear();
  if (!spec.arity_fits(words.size())) return false;
  fixed(spec, words.size(), positions);
  return rules[static_cast<std::size_t>(spec.rule)](spec, words, positions);
}

std::string unknown_keys(const CommandSpec& spec, Words words) {
  constexpr std::string_view no_integer = "value is not an integer or out of range";
  constexpr std::string_view beyond = "Number of keys can't be greater than number of args";
  constexpr std::string_view below_one = "numkeys should be greater than 0";
  struct Row {
    std::string_view beginning;  // of the names
    std::string_view no_number, too_small, too_many;
  };
  static constexpr Row rows[] = {
      {"blmpop", below_one, below_one, "syntax error"},
      {"bzmpop", below_one, below_one, "syntax error"},
      {"lmpop", below_one, below_one, "syntax error"},
      {"zmpop", below_one, below_one, "syntax error"},
      {"sintercard", below_one, below_one, beyond},
      {"eval", no_integer, "Number of keys can't be negative", beyond},
      {"fcall", "Bad number of keys provided", "Number of keys can't be negative", beyond},
      {"z", no_integer, "at least 1 input key is needed for '{}' command", "syntax error"}};
  const auto* const row = std::ranges::find_if(
      rows, [&](const Row& one) { return spec.name.starts_with(one.beginning); });
  if (spec.rule != KeyRule::counted || row == std::end(rows))
    return fmt::format("syntax error: '{}' does not tell which of its arguments are keys",
                       spec.name);
  const auto count = parse_integer<std::int64_t>(words[spec.rule_at]);
  return fmt::format(fmt::runtime(!count       ? row->no_number
                                  : *count < 1 ? row->too_small
                                               : row->too_many),
                     spec.name);
}

}  // namespace sluice::resp
