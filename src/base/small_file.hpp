/// A file from outside, read whole.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

/// Its bytes, `most` at most. Throws Error{bad_argument}: "shop.json: No such file or directory".
std::string read_small_file(const std::string& path, std::size_t most);

}  // namespace sluice
