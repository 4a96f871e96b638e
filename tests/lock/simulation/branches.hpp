/// The branches of the scripts in src/lock: which are there, and which were run.
///
/// A branch is what follows a `then`, an `else`, a `do` of a loop or the head of a function, and
/// the way past an `if` that has no `else`. A part that many scripts include is counted once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::simulation {

class Branches {
 public:
  /// Finds them in the sources. Throws std::logic_error where these are not what it knows.
  Branches();

  /// The text of the script with a mark at each branch, in the same lines: a script that runs it
  /// publishes the number of the branch to `channel`.
  std::string mark(const Script& script);
  static constexpr std::string_view channel = "simulation:branch";
  void reached(std::string_view number);

  /// "lock/mutex/mutex.lua:19 else: if not request then", how often it was run.
  std::map<std::string, std::uint64_t> counts() const;
  /// How many were never run.
  std::size_t missed() const noexcept { return missed_; }

 private:
  struct Line {
    std::string file;
    std::size_t number;
    std::string text;
  };
  using Lines = std::vector<Line>;
  struct Branch {
    std::string name;
    std::uint64_t count = 0;
  };

  Lines lines_of(const std::string& file, std::string_view heading) const;
  Lines with_includes(const Lines& lines) const;
  void add_file(const std::string& file);
  std::string mark(const Lines& lines);
  std::size_t branch_of(const Line& line, std::string_view kind, std::size_t which);

  std::map<std::string, Lines> files_;
  std::map<std::string, std::string> marked_;  // by the name of the script
  std::map<std::string, std::size_t> numbers_;
  std::vector<Branch> branches_;
  std::size_t missed_ = 0;
};

}  // namespace sluice::simulation
