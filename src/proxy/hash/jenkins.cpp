// Bob Jenkins' lookup3 (hashlittle), begun with 13.
#include <bit>

#include "proxy/hash/functions.hpp"
#include "proxy/hash/words.hpp"

namespace sluice::proxy::hashes {
namespace {

struct State {
  std::uint32_t a, b, c;

  void add(std::string_view block) noexcept {  // at most 12 bytes; missing ones are zero
    a += short_word_of(block);
    if (block.size() > 4) b += short_word_of(block.substr(4));
    if (block.size() > 8) c += short_word_of(block.substr(8));
  }

  void mix() noexcept {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }

  void finish() noexcept {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
  }
};

}  // namespace

std::uint32_t jenkins(std::string_view key) noexcept {
  const auto start = 0xdeadbeef + static_cast<std::uint32_t>(key.size()) + 13;
  State state{start, start, start};
  for (; key.size() > 12; key.remove_prefix(12)) {
    state.add(key.substr(0, 12));
    state.mix();
  }
  if (key.empty()) return state.c;
  state.add(key);
  state.finish();
  return state.c;
}

}  // namespace sluice::proxy::hashes
