/// From the configuration file to its value. What nutcracker 0.5.0 takes is taken, and means the
/// same; what it refuses is refused; beyond that there are the settings of our own.
#pragma once

#include <string>
#include <string_view>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

/// `file` is its name for messages. Throws Error{bad_argument}: "file:line: what is wrong; what to
/// do".
Config read_config(std::string_view yaml, std::string_view file);

/// Reads the file. Throws also for one that cannot be read or is too large.
Config load_config(const std::string& path);

/// The same, and the names that pools listen at must be known to this machine, as `nutcracker -t`
/// wants it. Blocks while the name service is asked.
Config check_config(const std::string& path);

}  // namespace sluice::proxy
