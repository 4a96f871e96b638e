/// SHA-1 as 40 lower-case hex digits: the name Redis gives a script. Not for security.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

std::string sha1_hex(std::string_view bytes);

}  // namespace sluice
