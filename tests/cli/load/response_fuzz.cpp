// Answers of any bytes: in pieces they are the same as whole, and what comes is never kept beyond
// the limits.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/load/response_reader.hpp"
#include "support/fuzz_require.hpp"

namespace sluice::load {
namespace {

struct Reading {
  std::vector<std::string> answers;
  std::string why;
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view input, std::size_t piece) {
  ResponseReader reader;
  Reading reading;
  while (!input.empty()) {
    // A copy of its own, so that a look behind the end is found.
    const std::vector<char> bytes(
        input.begin(), input.begin() + static_cast<std::ptrdiff_t>(std::min(piece, input.size())));
    const auto used = reader.consume({bytes.data(), bytes.size()});
    test::require(used <= bytes.size(), "more was used than there is");
    input.remove_prefix(used);
    if (reader.is_bad()) {
      reading.why = reader.why();
      return reading;
    }
    if (!reader.is_complete()) {
      test::require(used == bytes.size(), "an answer that has not ended leaves bytes");
      continue;
    }
    const auto answer = reader.take();
    test::require(answer.body.size() <= ResponseReader::largest_body, "too large a body");
    reading.answers.push_back(std::to_string(answer.status) + (answer.keeps_alive ? "+" : "-") +
                              answer.body);
  }
  return reading;
}

}  // namespace
}  // namespace sluice::load

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::load;
  if (size == 0) return 0;
  const std::string_view input{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto whole = read(input, std::max<std::size_t>(1, input.size()));
  sluice::test::require(read(input, 1 + data[0] % 61) == whole, "pieces are another answer");
  sluice::test::require(read(input, 1) == whole, "bytes are another answer");
  return 0;
}
