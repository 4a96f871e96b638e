/// Waiting for a program that tells nobody when it listens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/process.hpp"

namespace sluice::test {

/// False: it ended, or did not listen on 127.0.0.1:`port` for 20 seconds.
bool comes_to_listen(Process& process, std::uint16_t port);

std::string text_of(const std::filesystem::path& path);

}  // namespace sluice::test
