#include "proxy/redis/sort_patterns.hpp"

#include "resp/letters.hpp"

namespace sluice::proxy {
namespace {

bool has_star(std::string_view text) noexcept { return text.find('*') != std::string_view::npos; }

bool tells_its_home(std::string_view pattern, std::optional<HashTag> tag) noexcept {
  const auto part = hashed_part(pattern, tag);
  return part.size() < pattern.size() && !has_star(part);
}

}  // namespace

bool add_sort_patterns(Words words, std::optional<HashTag> tag, std::vector<std::size_t>& keys) {
  for (std::size_t at = 2; at + 1 < words.size(); ++at) {
    if (resp::is_word(words[at], "limit")) {
      at += 2;
    } else if (resp::is_word(words[at], "store")) {
      ++at;
    } else if (resp::is_word(words[at], "by") || resp::is_word(words[at], "get")) {
      const auto pattern = words[++at];
      if (!has_star(pattern)) continue;  // "nosort", "#": no key is read
      if (!tells_its_home(pattern, tag)) return false;
      keys.push_back(at);
    }
  }
  return true;
}

}  // namespace sluice::proxy
