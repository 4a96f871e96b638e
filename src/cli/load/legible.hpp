/// What a server has sent, for a line that a person reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::load {

/// What is no plain ASCII as \xNN, and cut behind `longest` bytes: a terminal is given no commands.
std::string legible(std::string_view bytes, std::size_t longest);

}  // namespace sluice::load
