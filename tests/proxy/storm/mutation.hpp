/// How a request that is right becomes one that is nearly so.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/request_stream.hpp"

namespace sluice::test {

inline bool one_in(Random& random, std::size_t many) { return up_to(random, many - 1) == 0; }

template <class Range>
const auto& one_of(const Range& choices, Random& random) {
  return choices[up_to(random, std::size(choices) - 1)];
}

/// Numbers about the limits of 32 and 64 bits, and what is nearly a number.
std::string odd_number(Random& random);

/// Some words are dropped, doubled, exchanged or replaced by one of `strange`.
void mutate_words(std::vector<std::string>& words, std::span<const std::string_view> strange,
                  Random& random);

/// Bytes come, go and change: NUL, control characters, line ends, blanks, up to a line of 64 KiB.
void mutate_bytes(std::string& bytes, Random& random);

}  // namespace sluice::test
