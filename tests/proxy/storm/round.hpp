/// What hostile clients send in one round of the storm; made of a seed, printed and shrunk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// One client's part.
struct Batch {
  std::vector<std::string> requests;  ///< their bytes; empty: this client does nothing
  std::vector<std::size_t> writes;    ///< bytes of the first writes; the rest is one more
  bool connects = false;              ///< begins with a new connection
  bool vanishes = false;              ///< resets the connection and waits for no reply

  std::string bytes() const {
    std::string all;
    for (const auto& request : requests) all += request;
    return all;
  }
};

using Round = std::vector<Batch>;  ///< by client

/// As it would stand in a C string: "get a\0\r\n". What is repeated often is told by its count.
std::string printable(std::string_view bytes);
std::string printable(const std::vector<Round>& rounds);

}  // namespace sluice::test
