/// The proxy from the command line, in the way of nutcracker.
#pragma once

#include <optional>

namespace sluice::cli {

/// Runs the proxy if that is what the line asks for: the program is called nutcracker, or its first
/// word is `proxy` and flags follow, or nothing. The exit code; none: the line asks for something
/// else.
/// REQUIRES: no other thread is there yet.
std::optional<int> run_as_nutcracker(int argc, char** argv);

}  // namespace sluice::cli
