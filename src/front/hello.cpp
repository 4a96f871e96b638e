#include "front/hello.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "resp/letters.hpp"

namespace sluice::front {

Hello read_hello(std::span<const std::string_view> words) {
  Hello hello;
  if (words.size() < 2) return hello;
  hello.protocol = parse_integer<int>(words[1]);
  if (!hello.protocol)
    hello.error = "ERR Protocol version is not an integer or out of range";
  else if (*hello.protocol != 2 && *hello.protocol != 3)
    hello.error = "NOPROTO unsupported protocol version";
  for (std::size_t at = 2; at < words.size() && hello.error.empty(); ++at) {
    const auto left = words.size() - 1 - at;
    if (resp::is_word(words[at], "auth") && left >= 2) {
      hello.login.emplace(words[at + 1], words[at + 2]);
      at += 2;
    } else if (resp::is_word(words[at], "setname") && left >= 1) {
      hello.name = words[++at];
    } else {
      hello.error = fmt::format("ERR Syntax error in HELLO option '{}'", words[at].substr(0, 128));
    }
  }
  return hello;
}

}  // namespace sluice::front
