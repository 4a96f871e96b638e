/// Programs that listen on a port of 127.0.0.1: waiting until one does, and what it says to bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "support/process.hpp"

namespace sluice::test {

/// False: it ended, or did not listen on 127.0.0.1:`port` for 20 seconds.
bool comes_to_listen(Process& process, std::uint16_t port);

/// A connection to 127.0.0.1:`port` without any memory of its own in this process. Throws
/// std::system_error.
Descriptor connect_to(std::uint16_t port);

std::string text_of(const std::filesystem::path& path);

struct Said {
  std::string bytes;
  bool closed = false;
};

/// Sends `bytes` on a connection of its own and reads until `last` is the end of what came, or the
/// peer closes. `last` empty: until it closes.
Said talk(std::uint16_t port, std::string_view bytes, std::string_view last);

}  // namespace sluice::test
