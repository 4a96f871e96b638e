/// Keys that a meta command sends in base64 (flag b): the ring goes by the bytes that they stand
/// for.
#pragma once

#include <string>
#include <string_view>

namespace sluice::proxy {

/// RFC 4648 with its padding, as memcached reads it. False: `text` is not base64.
bool decode_base64(std::string_view text, std::string& bytes);

}  // namespace sluice::proxy
