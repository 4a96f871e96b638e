/// Random requests from a list of patterns, so that two proxies can be asked the same.
///
/// A pattern is a line of words. A word `<kind>` stands for a random one of its kind; `<kind..>`
/// for one to `many` of them; all else is taken as it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using Random = std::mt19937_64;

inline std::size_t up_to(Random& random, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>{0, most}(random);
}

/// Any bytes; lengths are mostly small, now and then about the 16 KiB of twemproxy's buffers,
/// seldom very long.
inline std::string random_value(Random& random) {
  static constexpr std::size_t mbuf = 16384;
  std::size_t size = up_to(random, 40);
  if (up_to(random, 30) == 0) size = mbuf - 120 + up_to(random, 160);
  if (up_to(random, 60) == 0) size = up_to(random, 5 * mbuf);
  if (up_to(random, 1500) == 0) size = (1 << 20) - 600 + up_to(random, 100);
  std::string value(size, '\0');
  const auto form = up_to(random, 2);
  for (auto& c : value) c = static_cast<char>(form == 0 ? random() & 0xff : 'a' + (random() & 15));
  return value;
}

using WordMaker = std::function<std::string(Random&)>;
using Vocabulary = std::map<std::string_view, WordMaker>;

inline std::vector<std::string> fill(std::string_view pattern, const Vocabulary& vocabulary,
                                     Random& random, std::size_t many) {
  std::vector<std::string> words;
  while (!pattern.empty()) {
    auto word = pattern.substr(0, pattern.find(' '));
    pattern.remove_prefix(std::min(pattern.size(), word.size() + 1));
    if (!word.starts_with('<')) {
      words.emplace_back(word);
      continue;
    }
    word = word.substr(1, word.size() - 2);
    const bool repeats = word.ends_with("..");
    if (repeats) word.remove_suffix(2);
    // "key+value": several that belong together
    for (auto left = repeats ? 1 + up_to(random, many - 1) : 1; left > 0; --left)
      for (auto rest = word; !rest.empty();) {
        const auto kind = rest.substr(0, rest.find('+'));
        rest.remove_prefix(std::min(rest.size(), kind.size() + 1));
        words.push_back(vocabulary.at(kind)(random));
      }
  }
  return words;
}

/// A seed for what is random in a test: SLUICE_SEED, else a new one; and how many times as long it
/// shall be: SLUICE_LONG.
inline std::uint64_t seed() {
  const char* const given = std::getenv("SLUICE_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}
inline std::size_t longer(std::size_t usual) {
  const char* const factor = std::getenv("SLUICE_LONG");
  return usual * (factor ? std::strtoull(factor, nullptr, 10) : 1);
}

}  // namespace sluice::test
