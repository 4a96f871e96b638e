// Headers of the PROXY protocol of any bytes: in pieces they are the same as whole, they end where
// the specification says, so that no byte behind them is taken, and the client is whom they name.
#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/proxy_protocol.hpp"
#include "support/fuzz_require.hpp"

namespace sluice::http {
namespace {

struct Understood {
  std::size_t end = 0;  // in the input
  std::optional<std::string> client;
  bool operator==(const Understood&) const = default;
};

struct HeaderReading {
  ProxyHeader::Stage stage = ProxyHeader::Stage::coming;
  std::size_t used = 0;
  std::optional<std::string> client;
};

/// As a connection does: no more than is wanted, and what has come of it.
HeaderReading read(std::string_view input, std::size_t piece) {
  ProxyHeader header;
  HeaderReading reading;
  while (header.wants() > 0 && reading.used < input.size()) {
    const auto size = std::min({header.wants(), piece, input.size() - reading.used});
    // A copy of its own, so that a look behind the end is found.
    const auto from = input.begin() + static_cast<std::ptrdiff_t>(reading.used);
    const std::vector<char> bytes(from, from + static_cast<std::ptrdiff_t>(size));
    reading.used += size;
    reading.stage = header.read({bytes.data(), bytes.size()});
    test::require(reading.stage == header.stage(), "it says another stage than it is in");
  }
  const bool is_refused = reading.stage == ProxyHeader::Stage::refused;
  test::require(is_refused == !header.refusal().empty(), "a refusal says why, and nothing else");
  test::require((header.wants() > 0) == (reading.stage == ProxyHeader::Stage::coming),
                "it wants bytes while it is coming");
  if (reading.stage == ProxyHeader::Stage::done && header.names_client())
    reading.client = header.client();
  return reading;
}

/// proxy-protocol.txt, 2.2, by its own words; none is lenient. Empty: it is no whole header.
std::optional<Understood> strict(std::string_view input) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(input[at]); };
  if (input.size() < 16 || input.substr(0, 12) != std::string_view{"\r\n\r\n\0\r\nQUIT\n", 12})
    return {};
  if (byte(12) != 0x20 && byte(12) != 0x21) return {};
  const std::size_t length = byte(14) * 256U + byte(15);
  if (length > 4096 || input.size() < 16 + length) return {};
  Understood header{.end = 16 + length, .client = {}};
  if (byte(12) == 0x20 || byte(13) == 0x00) return header;
  std::size_t addresses = 0;
  if (byte(13) == 0x11) addresses = 12;
  if (byte(13) == 0x21) addresses = 36;
  if (byte(13) == 0x31) addresses = 216;
  if (addresses == 0 || length < addresses) return {};
  for (auto at = 16 + addresses; at != header.end;) {
    if (header.end - at < 3) return {};
    at += 3 + byte(at + 1) * 256U + byte(at + 2);
    if (at > header.end) return {};
  }
  char text[INET6_ADDRSTRLEN] = {};
  if (byte(13) != 0x31)
    inet_ntop(byte(13) == 0x11 ? AF_INET : AF_INET6, input.data() + 16, text, sizeof text);
  header.client = text;
  return header;
}

}  // namespace
}  // namespace sluice::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::http;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const auto whole = read(input, std::max<std::size_t>(1, input.size()));
  for (const std::size_t piece : {1, 7}) {
    const auto pieces = read(input, piece);
    sluice::test::require(pieces.stage == whole.stage && pieces.client == whole.client,
                          "pieces are another header than the whole");
  }
  const auto understood = strict(input);
  const bool is_done = whole.stage == ProxyHeader::Stage::done;
  sluice::test::require(is_done == understood.has_value(),
                        "a header was taken for none, or none for one");
  if (is_done)
    sluice::test::require(*understood == Understood{whole.used, whole.client},
                          "it ends elsewhere, or names another client");
  return 0;
}
