#include "proxy/storm/mutation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::test {
namespace {

using Words = std::vector<std::string>;

std::size_t place_in(const Words& words, Random& random) { return up_to(random, words.size() - 1); }

/// Where something ends is where readers differ: at blanks and line ends, else anywhere.
std::size_t place_in(std::string_view bytes, Random& random) {
  const auto anywhere = up_to(random, bytes.size());
  if (one_in(random, 3)) return anywhere;
  const auto end = bytes.find_first_of(one_in(random, 2) ? " " : "\r", anywhere);
  return end == std::string_view::npos ? std::min(bytes.find('\r'), bytes.size()) : end;
}

/// The lengths about which a buffer or a limit ends.
std::size_t long_line(Random& random) {
  static constexpr std::size_t lengths[] = {1024, 2048, 2048, 8192, 16384, 40000, 65536};
  return one_of(lengths, random) - 1 + up_to(random, 2);
}

void mutate_one_word(Words& words, std::span<const std::string_view> strange, Random& random) {
  const auto at = place_in(words, random);
  const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
  switch (up_to(random, 8)) {
    case 0:
    case 1: words.erase(place); break;
    case 2: words.insert(place, Words::value_type{words[at]}); break;
    case 3: std::swap(words[at], words[place_in(words, random)]); break;
    case 4: *place = odd_number(random); break;
    case 5: words.insert(place + 1, std::string{one_of(strange, random)}); break;
    case 6: words.emplace_back(one_of(strange, random)); break;
    case 7: *place = std::string{one_of(strange, random)}; break;
    default: *place += one_of(strange, random);
  }
}

}  // namespace

std::string odd_number(Random& random) {
  static constexpr std::string_view numbers[] = {"0",
                                                 "1",
                                                 "2",
                                                 "10",
                                                 "-1",
                                                 "+1",
                                                 "-0",
                                                 "-",
                                                 "+",
                                                 "007",
                                                 "1.5",
                                                 "1e3",
                                                 "0x10",
                                                 "2147483647",
                                                 "2147483648",
                                                 "-2147483649",
                                                 "4294967295",
                                                 "4294967296",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "-9223372036854775809",
                                                 "18446744073709551615",
                                                 "18446744073709551616",
                                                 "99999999999999999999999",
                                                 "00000000000000000000000000000001",
                                                 "1\t",
                                                 "1x",
                                                 ""};
  return std::string{one_of(numbers, random)};
}

void mutate_words(Words& words, std::span<const std::string_view> strange, Random& random) {
  for (auto left = 1 + up_to(random, 2); left > 0 && !words.empty(); --left)
    mutate_one_word(words, strange, random);
}

void mutate_bytes(std::string& bytes, Random& random) {
  using namespace std::string_view_literals;
  static constexpr std::string_view bits[] = {
      "\0"sv, "\0"sv,  "\r",    "\n", "\r\n", "\r\r\n", "\t", " ",    "\x01",   "\x7f", "\x80",
      "\xff", "\0 "sv, " \0"sv, "\"", "'",    "\v",     "\b", "\n\r", "\0\n"sv, "  ",   "\r\n\r\n"};
  for (auto left = 1 + up_to(random, 1); left > 0 && !bytes.empty(); --left) {
    const auto at = place_in(bytes, random);
    switch (up_to(random, 9)) {
      case 0: bytes.erase(at, 1 + up_to(random, 2)); break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random() & 0xff);
        break;
      case 2:
        if (bytes.ends_with("\r\n")) bytes.replace(bytes.size() - 2, 2, one_of(bits, random));
        break;
      case 3:
        if (one_in(random, 4)) bytes.insert(at, long_line(random), one_in(random, 2) ? ' ' : 'x');
        break;
      default: bytes.insert(at, one_of(bits, random));
    }
  }
}

}  // namespace sluice::test
