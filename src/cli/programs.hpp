/// Commands of `sluice` that are programs of their own, so that nobody builds or links more than
/// the command needs. `sluice NAME` becomes such a program (exec).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct OtherProgram {
  /// Which words of `sluice [OPTIONS] NAME WORDS...` it is given.
  enum class Line {
    as_it_stands,         ///< it knows the options of sluice, and NAME
    own_words,            ///< NAME [--json] WORDS...
    own_words_and_store,  ///< NAME [--json] [--store URL] WORDS...
  };
  std::string_view command;
  std::string_view file;
  std::string_view target;  ///< of the build
  Line line;
  std::string_view summary;
};

/// In the order in which the help lists them.
std::span<const OtherProgram> other_programs() noexcept;
/// REQUIRES: there is one.
const OtherProgram& program_of(std::string_view command) noexcept;

/// Where it may lie: beside this program, in libexec/sluice, and by its mere name, which means
/// PATH.
std::vector<std::string> places_of(const OtherProgram& other);
/// That it is in none of these places, and what to do.
std::string not_found_text(const OtherProgram& other);

/// Becomes that program. Returns only when it cannot be run: the exit code, after a line on stderr.
/// REQUIRES: a null pointer stands behind `words`, as behind argv.
int exec_program(const OtherProgram& other, std::span<char* const> words);

}  // namespace sluice::cli
