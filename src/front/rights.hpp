/// What a user may do: the words of a user's setting `acl`, which are those of Redis's ACL, and
/// what they say of a request.
///
/// Commands, keys and channels are checked as Redis 7 does it, before anything is sent. A user
/// begins with no right at all; words count in their order. `(...)` is a selector: rights of its
/// own, beside the others. A request is for a user who has one selector (or the words outside of
/// all) that allows the whole of it.
///
/// Not seen: what a script does with keys that it does not name, and which commands it runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/other_commands.hpp"
#include "resp/command_rights.hpp"

namespace sluice::front {

using Words = std::span<const std::string_view>;

/// What a user may not do. In the order in which Redis tells of them.
enum class Denied : std::uint8_t {
  nothing,
  command,
  key,
  channel,
  by,   ///< SORT by a pattern reads keys that nobody names
  get,  ///< as above
};

/// The error that answers the request, in Redis's words. REQUIRES: `denied` is not nothing.
std::string refusal_of(Denied denied, std::string_view command);

/// Threads: one (scratch space is kept between calls).
class Rights {
 public:
  /// `others` outlives it. Throws Error{bad_argument} that names the word and says what to write.
  Rights(std::string_view words, const OtherCommands& others);

  /// REQUIRES: the words fit the arity of the command. O(keys * patterns).
  Denied check(const resp::CommandSpec& spec, Words words);

  const resp::CommandSpec& spec_at(std::size_t index) const noexcept;

  /// Of a subscription. A pattern must be one that the user was given, to the letter.
  bool may_hear(std::string_view channel, bool is_pattern) const;
  /// It allows all that `other` does. (False, too, where that is not plain from the words.)
  bool covers(const Rights& other) const;

 private:
  struct KeyPattern {
    std::string glob;
    resp::KeyUse may;
    bool operator==(const KeyPattern&) const = default;
  };
  /// Rights that hold together.
  struct Selector {
    std::vector<bool> commands;                       // by CommandSpec::index
    std::vector<std::pair<std::string, bool>> named;  // other commands that differ from their rule
    std::vector<std::pair<std::size_t, std::string>> first_words;  // "+select|0"
    bool all_keys = false, all_channels = false;
    std::vector<KeyPattern> keys;
    std::vector<std::string> channels;

    bool may_use(std::string_view key, resp::KeyUse use) const;
    bool may_use_all(resp::KeyUse use) const;
    bool may_hear(std::string_view channel, bool is_pattern) const;
    bool covers(const Selector& other) const;
  };
  struct PlainWord;
  static const PlainWord plain_words[];

  void read(std::string_view word, Selector& selector) const;
  void read_command(std::string_view word, Selector& selector) const;
  void read_keys(std::string_view word, Selector& selector) const;
  void read_category(std::string_view word, Selector& selector) const;
  void allow(const resp::CommandSpec& spec, bool allowed, Selector& selector) const;
  void allow_all(bool allowed, Selector& selector) const;

  bool may_run(const Selector& selector, const resp::CommandSpec& spec, Words words) const;
  Denied check(const Selector& selector, const resp::CommandSpec& spec, Words words) const;

  const OtherCommands& others_;
  std::vector<Selector> selectors_;  // the first has the words outside of all others
  std::vector<std::size_t> keys_;    // positions
};

}  // namespace sluice::front
