/// Times of expiry as commands name them: relative or absolute, in seconds or milliseconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/reply.hpp"

namespace sluice::engine {

struct TimeUnit {
  bool seconds;
  bool relative;  ///< to now
};

/// EX, PX, EXAT or PXAT in any case. False: none of them.
bool read_time_unit(std::string_view word, TimeUnit& unit) noexcept;

/// Gives the absolute time in milliseconds. False: refused as "invalid expire time in 'command'
/// command". `positive`: also where the word is 0 or less (SET and GETEX; EXPIRE means deletion by
/// that).
bool read_expiry(const Context& context, std::string_view word, TimeUnit unit, bool positive,
                 std::string_view command, std::int64_t& at_ms, Reply& reply);

}  // namespace sluice::engine
