/// A key as logs and statistics show it: cut, and with every byte outside of printable ASCII as
/// \xNN.
#pragma once

#include <string>
#include <string_view>

namespace sluice::proxy {

inline constexpr std::size_t excerpt_size = 64;

/// "user:\x00\x01..." ; quotes and backslashes are escaped too, so that it can stand in a quoted
/// string.
std::string excerpt(std::string_view key, std::size_t most = excerpt_size);

}  // namespace sluice::proxy
