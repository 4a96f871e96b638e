#include "proxy/support/raw_talk.hpp"

#include <system_error>

#include "support/plain_client.hpp"

namespace sluice::test {

Said talk(std::uint16_t port, std::string_view bytes, std::string_view last) {
  PlainClient client{port};
  Said said;
  try {
    client.send(bytes);
    while (last.empty() || !said.bytes.ends_with(last)) {
      const auto more = client.read_raw();
      if (more.empty()) {
        said.closed = true;
        break;
      }
      said.bytes += more;
    }
  } catch (const std::system_error& error) {
    const auto code = error.code();
    if (code != std::errc::connection_reset && code != std::errc::broken_pipe) throw;
    said.closed = true;  // with bytes of ours that it has not read
  }
  return said;
}

}  // namespace sluice::test
