/// What the bit commands share.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/reply.hpp"

namespace sluice::engine {

/// The offset of a bit; "#3" counts fields of `width` bits where `width` is not 0. False: refused.
bool read_bit_offset(std::string_view word, std::int64_t width, std::int64_t& offset, Reply& reply);

}  // namespace sluice::engine
