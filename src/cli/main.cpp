/// The program `sluice`: every noun of the library from the command line. Some of its commands are
/// programs of their own, and it becomes these.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/programs.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {
namespace {

constexpr const char* examples =
    R"(Examples:
  sluice lock deploy --wait 5s -- make release
  sluice semaphore encoders --permits 4 -- ffmpeg in.mov out.mp4
  sluice --store embedded:/var/lib/app number INV --zone Europe/Berlin
  sluice locks --graph
Times are written 250ms, 5s, 2m, 1h, 1d; a bare number is seconds.)";

/// The row of another program, for the help and completion.
Command row_of(const OtherProgram& other) {
  return {.name = std::string{other.command},
          .summary = std::string{other.summary},
          .details = fmt::format("'sluice {} --help' explains it.", other.command),
          // other_line() sees the command, unless the options before it are none that it knows.
          .action = [&other]() -> int {
            throw Error{Errc::bad_argument,
                        fmt::format("write the options behind the word '{}'", other.command)};
          },
          .is_a_program = true};
}

Command table(Globals& globals) {
  Command root =
      table_of(globals, {lock_command, semaphore_command, latch_command, locks_command,
                         number_command, id_command, bloom_command, sale_command, room_command});
  for (const auto& other : other_programs()) root.commands.push_back(row_of(other));
  root.details = examples;
  return root;
}

/// Whether this program stands in for nutcracker: a link of that name.
bool is_nutcracker(const char* program) noexcept {
  const std::string_view path{program ? program : ""};
  return path.substr(path.rfind('/') + 1) == "nutcracker";
}

/// A program and its line.
struct OtherLine {
  const OtherProgram* program = nullptr;  ///< null: another command is meant
  std::vector<char*> words;
};

/// The words before the command of another program: options of `sluice`, `help`, `__complete`.
class Prefix {
 public:
  /// False: `line[at]` belongs to no prefix. `at` moves to the last word that was taken.
  bool take(std::span<char* const> line, std::size_t& at) {
    const std::string_view word{line[at]};
    if (word == "help" || word == "__complete") return kept_.push_back(line[at]), true;
    if (!word.starts_with('-')) return false;
    constexpr std::string_view store = "--store";  // or the beginning of this word
    if (word.size() > 2 && store.starts_with(word) && at + 1 < line.size())
      stores_.insert(stores_.end(), {line[at], line[at + 1]}), ++at;
    else if (word.starts_with("--store="))
      stores_.push_back(line[at]);
    else if (std::ranges::count(words_for_all, word) > 0)
      kept_.push_back(line[at]);
    else if (word != "-v" && word != "--verbose")
      is_known_ = false;
    return true;
  }

  /// For a program that knows no other option of `sluice`.
  bool is_known() const noexcept { return is_known_; }
  const std::vector<char*>& kept() const noexcept { return kept_; }
  const std::vector<char*>& stores() const noexcept { return stores_; }

 private:
  static constexpr std::string_view words_for_all[] = {"--json", "--man", "--markdown", "--help",
                                                       "-h"};
  std::vector<char*> kept_;
  std::vector<char*> stores_;
  bool is_known_ = true;
};

/// The line of `other`, whose command is `line[at]`, behind `prefix`.
std::vector<char*> words_for(const OtherProgram& other, std::span<char* const> line, std::size_t at,
                             const Prefix& prefix) {
  using Line = OtherProgram::Line;
  if (other.line == Line::as_it_stands) return {line.begin(), line.end()};
  std::vector<char*> words{line.front(), line[at]};
  const auto append = [&](std::span<char* const> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  append(prefix.kept());
  if (other.line == Line::own_words_and_store) append(prefix.stores());
  append(line.subspan(at + 1));
  return words;
}

/// `sluice [OPTIONS] [help] proxy WORDS...`, or a program called nutcracker.
OtherLine other_line(std::span<char* const> line) {
  if (is_nutcracker(line.front())) return {&program_of("proxy"), {line.begin(), line.end()}};
  Prefix prefix;
  for (std::size_t at = 1; at < line.size(); ++at) {
    const auto programs = other_programs();
    const auto other =
        std::ranges::find(programs, std::string_view{line[at]}, &OtherProgram::command);
    if (other == programs.end()) {
      if (!prefix.take(line, at)) return {};
      continue;
    }
    const bool is_completed = at + 1 == line.size() && std::string_view{line[1]} == "__complete";
    const bool is_for_it = other->line == OtherProgram::Line::as_it_stands || prefix.is_known();
    if (is_completed || !is_for_it) return {};
    return {&*other, words_for(*other, line, at, prefix)};
  }
  return {};
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  return run_main([&] {
    if (auto other = other_line({argv, argv + argc}); other.program) {
      other.words.push_back(nullptr);
      return exec_program(*other.program, {other.words.data(), other.words.size() - 1});
    }
    Globals globals;
    return run_program({table(globals), SLUICE_VERSION}, {argv + 1, argv + argc});
  });
}
