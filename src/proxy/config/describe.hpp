/// The settings as texts: of a configuration with everything that it leaves unsaid, and the table
/// of all there are.
#pragma once

#include <string>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

/// A file that means the same, every setting written out. Secrets are "***".
std::string describe(const Config& config);

/// The tables of docs/proxy.md.
std::string settings_as_markdown();

}  // namespace sluice::proxy
