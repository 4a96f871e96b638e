/// Commands in a file, as dump prints them: executed one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "engine/embedded/opened_engine.hpp"

namespace sluice::port {

struct LoadedCommands {
  std::uint64_t executed = 0;
  std::uint64_t refused = 0;
};

/// Executes what `read` gives, until it gives nothing, and commits it. `refused`: told of each
/// command that is answered with an error, with its number. Throws Error{corrupt} that says behind
/// how many commands the text is none: those before are executed and committed.
LoadedCommands execute_commands(
    engine::OpenedEngine& opened, const std::function<std::size_t(std::span<char> into)>& read,
    const std::function<void(std::uint64_t number, std::string_view name, std::string_view error)>&
        refused);

}  // namespace sluice::port
