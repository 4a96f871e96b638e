/// Completion of command lines: the shell asks the program, `sluice __complete WORDS...`.
#include <algorithm>

#include "cli/command_line/command.hpp"
#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view bash = R"(_{0}() {{
  local IFS=$'\n'
  COMPREPLY=($({0} __complete "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null | cut -f 1))
}}
complete -o default -F _{0} {0}
)";

constexpr std::string_view zsh = R"(#compdef {0}
_{0}() {{
  local -a found
  found=("${{(@f)$({0} __complete "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
  found=("${{(@)found//:/\\:}}")
  found=("${{(@)found/$'\t'/:}}")
  if [[ -n "${{found[1]}}" ]]; then _describe {0} found; else _files; fi
}}
if [[ "${{funcstack[1]}}" == "_{0}" ]]; then _{0}; else compdef _{0} {0}; fi
)";

constexpr std::string_view fish = R"fish(function __{0}_words
  {0} __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c {0} -a "(__{0}_words)"
)fish";

/// The option of `chain` that `word` names. Null: none.
const Option* option_named(std::span<const Command* const> chain, std::string_view word) {
  for (const Command* const command : chain)
    for (const Option& option : command->options)
      if (std::ranges::count(names_of(option), word) > 0) return &option;
  return nullptr;
}

bool takes_word(const Option* option) {
  return option && option->target.takes != Target::Takes::nothing;
}

}  // namespace

std::vector<std::string> completions(const Command& root, std::span<const std::string> words) {
  std::vector<const Command*> chain{&root};
  const std::string last = words.empty() ? "" : words.back();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--") return {};  // another program's words
    if (takes_word(option_named(chain, words[i]))) {
      if (++i + 1 == words.size()) return {};  // the value of an option
    } else if (const Command* const child = find_command(*chain.back(), words[i])) {
      chain.push_back(child);
    }
  }
  std::vector<std::string> found;
  const auto add = [&](std::string_view word, const std::string& help) {
    if (word.starts_with(last)) found.push_back(fmt::format("{}\t{}", word, help));
  };
  if (last.starts_with('-')) {
    for (const Command* const command : chain)
      for (const Option& option : command->options)
        for (const auto name : names_of(option))
          if (name.starts_with("--") || last.size() == 2) add(name, option.help);
  } else {
    for (const Command& child : chain.back()->commands)
      if (!child.hidden) add(child.name, child.summary);
  }
  return found;
}

std::string completion_script(const Command& root, std::string_view shell) {
  const std::string_view script = shell == "bash"   ? bash
                                  : shell == "zsh"  ? zsh
                                  : shell == "fish" ? fish
                                                    : std::string_view{};
  if (script.empty())
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no shell that can be served: bash, zsh or fish", shell)};
  return fmt::format(fmt::runtime(script), root.name);
}

}  // namespace sluice::cli
