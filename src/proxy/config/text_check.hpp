/// What must not stand in a configuration file, whatever YAML makes of it.
#pragma once

#include <string_view>

namespace sluice::proxy {

/// Refuses what is not UTF-8, control characters, directives (%) and document marks (---, ...).
/// Throws Problem.
void check_text(std::string_view yaml);

}  // namespace sluice::proxy
