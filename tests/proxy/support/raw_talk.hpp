/// What a peer says to some bytes, to the letter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::test {

struct Said {
  std::string bytes;
  bool closed = false;
};

/// Sends `bytes` on a connection of its own and reads until `last` is the end of what came, or the
/// peer closes. `last` empty: until it closes.
Said talk(std::uint16_t port, std::string_view bytes, std::string_view last);

}  // namespace sluice::test
