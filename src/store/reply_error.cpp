#include "store/reply_error.hpp"

#include <algorithm>
#include <vector>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/reply_parser.hpp"
#include "resp/server_words.hpp"

namespace sluice {
namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";

/// "HSET of 'user:42': WRONGTYPE ...".
Error with_place(const Error& error, const std::string& call, Effect effect) {
  return {error.errc(), call + ": " + error.message(), effect};
}

std::string_view key_of(Words command) {
  const auto* const spec = resp::find_command(command);
  const auto at = spec ? spec->first_key : 0;
  return at > 0 && static_cast<std::size_t>(at) < command.size()
             ? command[static_cast<std::size_t>(at)]
             : std::string_view{};
}

/// "... on @user_script:8." of Redis 7, "@user_script: 8: ..." of Redis 6; 0: no line is named.
std::size_t line_of(std::string_view reply) {
  constexpr std::string_view mark = "@user_script:";
  const auto at = reply.rfind(mark);
  if (at == std::string_view::npos) return 0;
  auto number = reply.substr(at + mark.size());
  if (number.starts_with(' ')) number.remove_prefix(1);
  return leading_number<std::size_t>(number);
}

struct Calls {
  int all = 0;
  bool write = false;
  std::string_view verb{};  ///< of the last; empty: it is no text
};

/// The calls of `redis` in one line of Lua.
Calls calls_in(std::string_view line) {
  Calls calls;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const bool is_comment = line.starts_with("--") && !line.starts_with("--[");
  if (is_comment || line == "local call = redis.call") return calls;
  for (auto at = line.find("call"); at != std::string_view::npos; at = line.find("call", at + 4)) {
    ++calls.all;
    auto verb = line.substr(at + 4);
    verb.remove_prefix(std::min(verb.find_first_not_of("( "), verb.size()));
    const bool is_text = verb.starts_with('\'') || verb.starts_with('"');
    if (is_text) verb.remove_prefix(1);
    calls.verb = is_text ? verb.substr(0, std::min(verb.find_first_of("'\""), verb.size()))
                         : std::string_view{};
    const auto* const spec = resp::find_command(calls.verb);
    // PUBLISH writes nothing, but it is heard. Some commands write by their second word (XGROUP).
    calls.write |= !is_text || !spec || spec->has(resp::flag_write) ||
                   spec->has(resp::flag_pubsub) || spec->has(resp::flag_container);
  }
  return calls;
}

/// How many more parentheses a line opens than it closes.
int opened_in(std::string_view line) {
  return static_cast<int>(std::ranges::count(line, '(') - std::ranges::count(line, ')'));
}

bool has_word(std::string_view line, std::string_view word) {
  for (auto at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const auto end = at + word.size();
    const bool begins = at == 0 || letters.find(line[at - 1]) == std::string_view::npos;
    const bool ends = end == line.size() || letters.find(line[end]) == std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

std::string_view text_of_line(std::string_view script, std::size_t line) {
  for (; line > 1 && !script.empty(); --line)
    script.remove_prefix(std::min(script.find('\n') + 1, script.size()));
  return script.substr(0, script.find('\n'));
}

/// A server before 7.2 does not say what in a script the user may not do.
Error with_forbidden_verb(const Error& error, std::string_view reply, std::string_view script) {
  const auto line = line_of(reply);
  if (error.errc() != Errc::authentication || line == 0) return error;
  const Calls calls = calls_in(text_of_line(script, line));
  if (calls.all != 1 || calls.verb.empty()) return error;
  return {error.errc(), "NOPERM " + std::string{calls.verb} + ": " + error.message(),
          error.effect()};
}

}  // namespace

bool may_have_written(std::string_view script, std::size_t line, bool line_was_done) {
  bool again = false;  // the line that failed may have run before: it stands in a loop or function
  int open = 0;        // parentheses at the end of that line: its call goes on in the next
  for (std::size_t number = 1; !script.empty(); ++number) {
    const auto text = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(text.size() + 1, script.size()));
    if (number <= line)
      for (const auto word : {"for", "while", "repeat", "function"}) again |= has_word(text, word);
    if (number > line && !again && open <= 0) return false;
    const auto calls = calls_in(text);
    if (calls.write && (number != line || calls.all > 1 || again || line_was_done)) return true;
    if (number >= line) open += opened_in(text);
  }
  return false;
}

namespace {

/// What a server refuses before it runs anything of a script, or before the script's first write.
bool is_refused_whole(const Error& error, std::string_view reply) {
  if (error.errc() == Errc::read_only || error.errc() == Errc::out_of_space)
    return error.effect() == Effect::none;
  constexpr std::string_view beginnings[] = {
      "NOSCRIPT ",   "NOAUTH ", "WRONGPASS ", "BUSY ",        "LOADING ",
      "MASTERDOWN ", "NOPERM ", "TRYAGAIN ",  "CLUSTERDOWN ", resp::unreached};
  return error.effect() == Effect::none &&
         std::ranges::any_of(beginnings,
                             [reply](std::string_view text) { return reply.starts_with(text); });
}

/// So a script ends the text of an error that it returns: it has refused before its first write.
constexpr std::string_view nothing_was_written = "; nothing was written";

/// What the text of a script tells of its failure.
Effect effect_by_text(const Error& error, std::string_view reply, std::string_view script) {
  if (error.effect() == Effect::done) return Effect::done;
  if (reply.ends_with(nothing_was_written) || is_refused_whole(error, reply)) return Effect::none;
  const auto line = line_of(reply);
  // A script may return an error, which names no line, at its end.
  if (line == 0)
    return may_have_written(script, std::string_view::npos, true) ? Effect::unknown : Effect::none;
  // "user_script:8: attempt to ...": Lua failed, and not the call in this line.
  const auto own = reply.find("user_script:");
  const bool is_of_lua = own > 0 && reply[own - 1] != '@';
  return may_have_written(script, line, is_of_lua) ? Effect::unknown : Effect::none;
}

/// The effect of a program's own script, which may say anything itself, and write anything before.
Effect effect_of_foreign_script(const Error& error, std::string_view reply) {
  // A redirection of its slot was followed; any other is its own.
  const auto state = resp::state_told(reply, true);
  const bool is_of_server =
      state && state != resp::ServerState::moved && state != resp::ServerState::asking;
  if (is_of_server) return Effect::none;
  return error.effect() == Effect::done ? Effect::done : Effect::unknown;
}

}  // namespace

namespace {

constexpr std::size_t longest_shown = 100;

std::string quoted(std::string_view key) {
  std::string text{"'"};
  for (const char c : key.substr(0, longest_shown))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text + (key.size() > longest_shown ? "...'" : "'");
}

/// A server does not say which key of a script is of another type.
std::string remedy(Words keys) {
  constexpr std::size_t most = 8;
  std::string text = keys.size() > 1 ? "; one of the keys" : "; the key";
  for (const auto key : keys.first(std::min(keys.size(), most))) text += ' ' + quoted(key);
  return text + " is something else's: use another name, or delete what is there";
}

}  // namespace

std::string name_of_call(std::string_view verb, std::string_view key) {
  const std::string text{verb.substr(0, longest_shown)};
  return key.empty() ? text : text + " of " + quoted(key);
}

std::string name_of_command(Words command) {
  return name_of_call(command.empty() ? "a command" : command.front(), key_of(command));
}

Error error_of_command(std::string_view reply, Words command, std::optional<Effect> effect) {
  const Error error = error_of_reply(reply);
  const auto* const spec = resp::find_command(command);
  // Of many keys that are migrated some may have gone.
  if (!effect && (resp::runs_script(spec) || (spec && spec->name == "migrate")))
    effect = effect_of_foreign_script(error, reply);
  return with_place(error, name_of_command(command), effect.value_or(error.effect()));
}

Error error_of_script(std::string_view reply, const Script& script, Words keys,
                      std::optional<Effect> effect) {
  Error error = error_of_reply(reply);
  if (error.errc() == Errc::wrong_type && script.is_of_sluice &&
      !reply.ends_with(nothing_was_written))  // that says which key
    error = {error.errc(), error.message() + remedy(keys), error.effect()};
  if (!effect)
    effect = script.is_of_sluice ? effect_by_text(error, reply, script.text)
                                 : effect_of_foreign_script(error, reply);
  return with_place(with_forbidden_verb(error, reply, script.text),
                    name_of_call(script.name, keys.empty() ? std::string_view{} : keys.front()),
                    *effect);
}

Error error_of_item(const Batch::Item& item, std::string_view reply) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (!item.script) return error_of_command(reply, words);
  return error_of_script(reply, *item.script, Words{words}.first(item.key_count));
}

bool is_outage(const Error& failure) noexcept {
  switch (failure.errc()) {
    case Errc::connection:
    case Errc::timeout:
    case Errc::read_only: return true;
    case Errc::server: break;
    default: return false;
  }
  static constexpr std::string_view states[] = {"LOADING ", "BUSY ", "MASTERDOWN ", "CLUSTERDOWN "};
  return std::ranges::any_of(states, [&](std::string_view state) {
    return failure.message().find(state) != std::string::npos;
  });
}

Error closed_by_fork() {
  return Error{Errc::closed, "this Store was opened before fork(); open another in the child"};
}

}  // namespace sluice
