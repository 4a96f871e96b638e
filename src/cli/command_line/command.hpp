/// A command line as a table. From the same rows come the parser, the help, the completion of
/// shells, the man pages and the reference in Markdown.
///
///     std::int64_t count = 1;
///     const Command root{
///         .name = "shop",
///         .summary = "Sell things",
///         .commands = {{.name = "buy",
///                       .summary = "Buy one thing",
///                       .arguments = {{"NAME", "What to buy", into(name)}},
///                       .options = {{"-n, --count", "N", "How many", into(count, 1, 100)}},
///                       .action = [&] { return buy(name, count); }}}};
///     return run_program({root, "1.0"}, {argv + 1, argv + argc});
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::cli {

/// Where the words go that an option or an argument is given.
struct Target {
  enum class Takes { nothing, one_word, many_words };
  Takes takes;
  /// Throws Error{bad_argument}: "'x' is no ...". A flag is given an empty word.
  std::function<void(const std::string& word)> set;
  std::string preset;  ///< the value where none is given, for the help; empty: say nothing
};

// The variable must live until the action has run. What it holds now is the preset.
Target into(bool& flag);
Target into(std::string& text);
/// An option that may be repeated, or an argument that takes all words that follow.
Target into(std::vector<std::string>& words);
/// A bare number is seconds.
Target into(std::chrono::milliseconds& time);
Target into(double& number, double least, double most);
/// As ISO 8601 writes it, with its zone.
Target into_instant(std::optional<WallTime>& instant);
Target into_integer(std::function<void(std::int64_t)> set, std::string preset, std::int64_t least,
                    std::int64_t most);
template <std::integral Number>
Target into(Number& number, std::int64_t least, std::int64_t most) {
  const auto preset = static_cast<std::int64_t>(number);  // out of range: there is none
  return into_integer([&number](std::int64_t value) { number = static_cast<Number>(value); },
                      preset >= least && preset <= most ? std::to_string(preset) : "", least, most);
}

struct Option {
  std::string names;  ///< "-n, --count"
  std::string value;  ///< "N"; empty for a flag
  std::string help;
  Target target;
  bool required = false;
};

struct Argument {
  std::string name;  ///< "NAME"
  std::string help;
  Target target;
  bool required = true;
  /// Its words are another program's: they must follow "--".
  bool after_dashes = false;
};

struct Command {
  std::string name;     ///< of the program: with which its usage lines begin, "sluice proxy"
  std::string summary;  ///< one sentence without its full stop
  std::vector<Argument> arguments{};
  /// The options of a program are understood behind each of its commands, too.
  std::vector<Option> options{};
  std::vector<Command> commands{};
  std::string details{};          ///< more paragraphs for the help and the man page
  std::function<int()> action{};  ///< none: one of `commands` must be given
  bool hidden = false;
  bool is_a_program = false;  ///< `action` becomes another program, which has a man page of its own
};

struct Program {
  Command root;
  std::string version;
  bool is_part = false;  ///< another program of the root's name has its help and its completion
};

/// Reads the words that follow the program's name, and runs the action they ask for. Adds `help`
/// and `completion` to the commands, if there are some. Bad words: one line on stderr and
/// exit_usage. An Error of the action is reported, headed by the command and its first argument
/// ("lock 'deploy': ..."). Threads: one at a time (getopt).
int run_program(Program program, std::span<char* const> words);

// What `help` and `completion` print. `path`: the names of a command, from below the root.

std::string help_text(const Command& root, std::span<const std::string> path);
/// In roff. A command's page explains the commands below it as well; so does a root whose name has
/// two words, since it stands for one command of another program.
std::string man_page(const Program& program, std::span<const std::string> path);
/// All man pages, and the scripts of `completion`, below `folder` as they lie below /usr/share.
void write_pages(const Program& program, const std::string& folder);
/// All commands, as a page of documentation; with a path that of one command alone.
std::string markdown(const Command& root, std::span<const std::string> path = {});
/// What may stand where the last of `words` stands: "word" or "word<tab>what it is".
std::vector<std::string> completions(const Command& root, std::span<const std::string> words);
/// For "bash", "zsh" or "fish". It asks the program itself, so it cannot be out of date.
std::string completion_script(const Command& root, std::string_view shell);

// What the files of this folder share.

std::vector<std::string_view> names_of(const Option& option);
const Command* find_command(const Command& parent, std::string_view name);
/// The root, and the commands of `path` below it. Throws Error{bad_argument} for an unknown one.
std::vector<const Command*> commands_on(const Command& root, std::span<const std::string> path);

}  // namespace sluice::cli
