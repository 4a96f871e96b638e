/// Random commands, drawn from templates with a seed.
///
///   word            itself
///   <kind>          a word of that kind (grammar.cpp)
///   [ a | b ]       one of them or nothing
///   ( a | b )       one of them
///   { a }           once, twice or three times
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using Command = std::vector<std::string>;

class Grammar {
 public:
  enum class Keys {
    typed,  ///< a <list> is nearly always a list
    mixed,  ///< the names of strings, hashes, lists, sets and sorted sets are the same few
  };

  Grammar(std::uint64_t seed, std::span<const std::string_view> templates, Keys keys = Keys::typed);
  /// Words for more commands.
  void add(std::span<const std::string_view> templates);

  /// The next command. Now and then a word is wrong, so that errors are compared too.
  Command next();

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t times) { return below(times) == 0; }

 private:
  using Tokens = std::span<const std::string_view>;

  void expand(Tokens tokens, Command& out);
  void choose(Tokens alternatives, Command& out);
  void spoil(Command& command);
  std::string word(std::string_view kind);

  std::mt19937_64 random_;
  Keys keys_;
  std::vector<std::vector<std::string_view>> templates_;
  std::uint64_t step_ = 0;
};

/// For messages: as it could be typed into redis-cli.
std::string to_line(const Command& command);

}  // namespace sluice::test
