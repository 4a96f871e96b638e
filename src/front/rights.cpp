#include "front/rights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/text.hpp"
#include "resp/glob.hpp"
#include "resp/letters.hpp"
#include "sluice/error.hpp"

namespace sluice::front {
namespace {

using resp::KeyUse;

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("acl: '{}' {}", word, why)};
}

constexpr std::size_t most_words = 4096;
constexpr std::string_view blanks = " \t\r\n";

/// Takes the next word. Empty: there is none.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

/// "; did you mean 'get'?", or nothing.
template <class Things>
std::string hint_for(std::string_view mistaken, const Things& things) {
  constexpr std::size_t longest = 40;
  std::size_t nearest = 3;
  std::string_view name;
  for (const auto& thing : things) {
    if (mistaken.size() > longest) break;
    const auto distance = edit_distance(mistaken, thing.name);
    if (distance < nearest) nearest = distance, name = thing.name;
  }
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

/// Words of Redis's ACL that are not about what a user may do. What follows a sign of a password is
/// not repeated.
void refuse_foreign(std::string_view word) {
  constexpr std::string_view signs = "><#!";
  if (signs.contains(word.front()))
    refuse(word.substr(0, 1), "begins a password; that is the user's setting 'password'");
  for (const auto* foreign : {"nopass", "resetpass"})
    if (resp::is_word(word, foreign))
      refuse(word, "is about passwords; a user has one, in the setting 'password'");
  for (const auto* foreign : {"on", "off", "reset"})
    if (resp::is_word(word, foreign))
      refuse(word, "has no place here: a user who is in the file is on, and begins with no right");
  for (const auto* foreign : {"clearselectors", "sanitize-payload", "skip-sanitize-payload"})
    if (resp::is_word(word, foreign)) refuse(word, "does nothing here; remove it");
}

std::string in_lower_case(std::string_view text) {
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(), resp::lower);
  return lower;
}

/// Of the letters between '%' and '~': R, W or both, each once. Nothing: they are not right.
KeyUse use_of(std::string_view letters) {
  auto use = KeyUse::nothing;
  for (const char letter : letters) {
    const auto one = resp::lower(letter) == 'r'   ? KeyUse::read
                     : resp::lower(letter) == 'w' ? KeyUse::write
                                                  : KeyUse::nothing;
    if (resp::covers(use, one)) return KeyUse::nothing;
    use = use | one;
  }
  return use;
}

/// Where the channels of a command stand.
struct Channels {
  std::size_t first = 1;
  std::size_t count = 0;  ///< 0: it has none
  bool are_patterns = false;
};
Channels channels_of(const resp::CommandSpec& spec) {
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  if (!spec.has(resp::flag_pubsub)) return {};
  if (spec.name == "publish" || spec.name == "spublish") return {.count = 1};
  if (spec.name == "subscribe" || spec.name == "ssubscribe") return {.count = all};
  if (spec.name == "psubscribe") return {.count = all, .are_patterns = true};
  return {};
}

/// SORT reads the keys that BY and GET make of each element, so all keys must be open to it.
Denied denied_of_sort(Words words) {
  for (std::size_t at = 2; at + 1 < words.size(); ++at) {
    if (resp::is_word(words[at], "limit")) {
      at += 2;
    } else if (resp::is_word(words[at], "store")) {
      ++at;
    } else if (resp::is_word(words[at], "get")) {
      return Denied::get;
    } else if (resp::is_word(words[at], "by") && words[++at].contains('*')) {
      return Denied::by;
    }
  }
  return Denied::nothing;
}

}  // namespace

std::string refusal_of(Denied denied, std::string_view command) {
  switch (denied) {
    case Denied::nothing: break;
    case Denied::command:
      return fmt::format("{}NOPERM this user has no permissions to run the '{}' command",
                         command == "exec" ? "EXECABORT Transaction discarded because of: " : "",
                         command);
    case Denied::key:
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case Denied::channel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
    case Denied::by: return "ERR BY option of SORT denied due to insufficient ACL permissions.";
    case Denied::get: return "ERR GET option of SORT denied due to insufficient ACL permissions.";
  }
  return {};
}

struct Rights::PlainWord {
  std::string_view word;
  void (*apply)(const Rights& rights, Selector& selector);
};

const Rights::PlainWord Rights::plain_words[] = {
    {"allcommands", [](const Rights& rights, Selector& s) { rights.allow_all(true, s); }},
    {"+@all", [](const Rights& rights, Selector& s) { rights.allow_all(true, s); }},
    {"nocommands", [](const Rights& rights, Selector& s) { rights.allow_all(false, s); }},
    {"-@all", [](const Rights& rights, Selector& s) { rights.allow_all(false, s); }},
    {"allkeys", [](const Rights&, Selector& s) { s.all_keys = true, s.keys.clear(); }},
    {"~*", [](const Rights&, Selector& s) { s.all_keys = true, s.keys.clear(); }},
    {"resetkeys", [](const Rights&, Selector& s) { s.all_keys = false, s.keys.clear(); }},
    {"allchannels", [](const Rights&, Selector& s) { s.all_channels = true, s.channels.clear(); }},
    {"&*", [](const Rights&, Selector& s) { s.all_channels = true, s.channels.clear(); }},
    {"resetchannels",
     [](const Rights&, Selector& s) { s.all_channels = false, s.channels.clear(); }},
};

Rights::Rights(std::string_view words, const OtherCommands& others) : others_(others) {
  const auto add_selector = [this]() -> Selector& {
    auto& selector = selectors_.emplace_back();
    allow_all(false, selector);
    return selector;
  };
  add_selector();
  bool inside = false;
  std::size_t count = 0;
  for (auto word = take_word(words); !word.empty(); word = take_word(words)) {
    if (++count > most_words)
      refuse(word, fmt::format("is beyond the {} words of an ACL", most_words));
    if (!inside && word.front() == '(') {
      inside = true;
      add_selector();
      word.remove_prefix(1);
    }
    const bool closes = inside && word.ends_with(')');
    if (closes) word.remove_suffix(1);
    if (!word.empty()) read(word, inside ? selectors_.back() : selectors_.front());
    if (closes) inside = false;
  }
  if (inside) refuse("(", "is not closed; end the selector with ')'");
}

void Rights::read(std::string_view word, Selector& selector) const {
  const auto plain = std::ranges::find_if(
      plain_words, [word](const PlainWord& row) { return resp::is_word(word, row.word); });
  if (plain != std::end(plain_words)) return plain->apply(*this, selector);
  refuse_foreign(word);
  switch (word.front()) {
    case '+':
    case '-':
      return word.substr(1).starts_with('@') ? read_category(word, selector)
                                             : read_command(word, selector);
    case '~':
    case '%': return read_keys(word, selector);
    case '&': {
      if (selector.all_channels)
        refuse(word,
               "changes nothing behind 'allchannels'; remove one, or begin with "
               "'resetchannels'");
      const auto channel = word.substr(1);
      if (std::ranges::find(selector.channels, channel) == selector.channels.end())
        selector.channels.emplace_back(channel);
      return;
    }
    default:
      refuse(word,
             "is no word of an ACL; write +command, -command, +@category, -@category, ~keys, "
             "%R~keys, %W~keys or &channels, or put several in ( )");
  }
}

/// The same pattern twice is one, for all that was said of it.
void Rights::read_keys(std::string_view word, Selector& selector) const {
  if (selector.all_keys)
    refuse(word, "changes nothing behind 'allkeys'; remove one, or begin with 'resetkeys'");
  const auto tilde = word.find('~');
  const auto use = tilde == 0 ? KeyUse::both : use_of(word.substr(1, tilde - 1));
  if (tilde == std::string_view::npos || use == KeyUse::nothing)
    refuse(word, "does not say what may be done with which keys; write %R~keys, %W~keys or ~keys");
  const auto glob = word.substr(tilde + 1);
  const auto known = std::ranges::find(selector.keys, glob, &KeyPattern::glob);
  if (known == selector.keys.end())
    selector.keys.push_back({std::string{glob}, use});
  else
    known->may = known->may | use;
}

void Rights::read_category(std::string_view word, Selector& selector) const {
  const auto categories = resp::all_categories();
  const auto category = std::ranges::find_if(categories, [&](const resp::Category& each) {
    return resp::is_word(word.substr(2), each.name);
  });
  if (category == categories.end())
    refuse(word,
           fmt::format("names no category of commands{}", hint_for(word.substr(2), categories)));
  const bool allowed = word.front() == '+';
  for (const auto& spec : resp::all_commands())
    if ((resp::categories_of(spec) & category->bit) != 0) allow(spec, allowed, selector);
  for (const auto& spec : others_.all())
    if ((resp::categories_of(spec) & category->bit) != 0) allow(spec, allowed, selector);
}

void Rights::read_command(std::string_view word, Selector& selector) const {
  const bool allowed = word.front() == '+';
  const auto name = word.substr(1);
  if (const auto* const spec = resp::find_command(name)) return allow(*spec, allowed, selector);
  const auto bar = name.rfind('|');
  if (bar == std::string_view::npos) {
    if (others_.find(name) == nullptr)
      refuse(word, fmt::format("names no command{}", hint_for(name, resp::all_commands())));
    selector.named.emplace_back(in_lower_case(name), allowed);
    return;
  }
  const auto* const spec = resp::find_command(name.substr(0, bar));
  const auto first = name.substr(bar + 1);
  if (spec == nullptr || spec->has(resp::flag_container) || spec->name.contains('|') ||
      first.empty())
    refuse(word, fmt::format("names no subcommand{}", hint_for(name, resp::all_commands())));
  if (!allowed)
    refuse(word,
           "takes away a first word, but words can only be given: take away the command, "
           "then allow it with those that are right");
  selector.first_words.emplace_back(spec->index, in_lower_case(first));
}

/// A container's subcommands go with it.
void Rights::allow(const resp::CommandSpec& spec, bool allowed, Selector& selector) const {
  selector.commands[spec.index] = allowed;
  std::erase_if(selector.first_words, [&](const auto& word) { return word.first == spec.index; });
  if (spec.index >= OtherCommands::first_index())
    std::erase_if(selector.named,
                  [&](const auto& named) { return others_.find(named.first) == &spec; });
  if (!spec.has(resp::flag_container)) return;
  const auto all = resp::all_commands();
  for (auto at = spec.index + 1; at < all.size() && all[at].name.starts_with(spec.name); ++at)
    if (all[at].name[spec.name.size()] == '|') selector.commands[at] = allowed;
}

void Rights::allow_all(bool allowed, Selector& selector) const {
  selector.commands.assign(OtherCommands::first_index() + others_.all().size(), allowed);
  selector.named.clear();
  selector.first_words.clear();
}

const resp::CommandSpec& Rights::spec_at(std::size_t index) const noexcept {
  const auto first = OtherCommands::first_index();
  return index < first ? resp::all_commands()[index] : others_.all()[index - first];
}

Denied Rights::check(const resp::CommandSpec& spec, Words words) {
  constexpr std::size_t usual = 1024;
  if (!resp::keys_of(spec, words, keys_)) return Denied::key;  // and nothing is known of its keys
  auto denied = Denied::command;
  for (const auto& selector : selectors_) {
    const auto its = check(selector, spec, words);
    if (its == Denied::nothing) return its;
    denied = std::max(denied, its);
  }
  if (keys_.capacity() > usual) keys_ = {};
  return denied;
}

Denied Rights::check(const Selector& selector, const resp::CommandSpec& spec, Words words) const {
  if (!may_run(selector, spec, words)) return Denied::command;
  if (!selector.all_keys && !keys_.empty() && !spec.has(resp::flag_pubsub)) {
    const auto uses = resp::uses_of(spec, words);
    for (const auto position : keys_)
      if (!selector.may_use(words[position], position == keys_.front() ? uses.first : uses.others))
        return Denied::key;
  }
  if (others_.is_whole(spec) && !selector.may_use_all(resp::uses_of(spec, words).first))
    return Denied::key;
  const auto [first, count, are_patterns] = channels_of(spec);
  for (const auto channel : words.subspan(first, std::min(count, words.size() - first)))
    if (!selector.may_hear(channel, are_patterns)) return Denied::channel;
  const bool sorts = spec.name == "sort" || spec.name == "sort_ro";
  return sorts && !selector.may_use_all(KeyUse::read) ? denied_of_sort(words) : Denied::nothing;
}

bool Rights::may_run(const Selector& selector, const resp::CommandSpec& spec, Words words) const {
  if (spec.has(resp::flag_no_auth)) return true;
  if (spec.index >= OtherCommands::first_index()) {
    const auto named = std::ranges::find_if(
        selector.named.rbegin(), selector.named.rend(),
        [&](const auto& each) { return resp::is_word(words.front(), each.first); });
    if (named != selector.named.rend()) return named->second;
  }
  if (selector.commands[spec.index]) return true;
  return std::ranges::any_of(selector.first_words, [&](const auto& word) {
    return word.first == spec.index && words.size() > 1 && resp::is_word(words[1], word.second);
  });
}

bool Rights::Selector::may_use(std::string_view key, KeyUse use) const {
  return all_keys || std::ranges::any_of(keys, [&](const KeyPattern& pattern) {
           return resp::covers(pattern.may, use) && resp::glob_matches(pattern.glob, key);
         });
}

bool Rights::Selector::may_use_all(KeyUse use) const {
  return all_keys || std::ranges::any_of(keys, [&](const KeyPattern& pattern) {
           return resp::covers(pattern.may, use) && pattern.glob == "*";
         });
}

bool Rights::Selector::may_hear(std::string_view channel, bool is_pattern) const {
  return all_channels || std::ranges::any_of(channels, [&](const std::string& glob) {
           return is_pattern ? glob == channel : resp::glob_matches(glob, channel);
         });
}

bool Rights::may_hear(std::string_view channel, bool is_pattern) const {
  return std::ranges::any_of(
      selectors_, [&](const Selector& each) { return each.may_hear(channel, is_pattern); });
}

bool Rights::Selector::covers(const Selector& other) const {
  for (std::size_t at = 0; at < commands.size(); ++at)
    if (other.commands[at] && !commands[at]) return false;
  if (named != other.named || first_words != other.first_words) return false;
  const bool keys_stay =
      all_keys || (!other.all_keys && std::ranges::all_of(other.keys, [&](const auto& pattern) {
        const auto ours = std::ranges::find(keys, pattern.glob, &KeyPattern::glob);
        return ours != keys.end() && resp::covers(ours->may, pattern.may);
      }));
  const bool channels_stay =
      all_channels ||
      (!other.all_channels && std::ranges::all_of(other.channels, [&](const auto& channel) {
        return std::ranges::find(channels, channel) != channels.end();
      }));
  return keys_stay && channels_stay;
}

bool Rights::covers(const Rights& other) const {
  return others_.is_same_as(other.others_) &&
         std::ranges::all_of(other.selectors_, [this](const Selector& theirs) {
           return std::ranges::any_of(selectors_,
                                      [&](const Selector& ours) { return ours.covers(theirs); });
         });
}

}  // namespace sluice::front
