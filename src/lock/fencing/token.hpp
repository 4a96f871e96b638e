/// What every checker asks of a token.
#pragma once

#include <string>

#include "sluice/error.hpp"
#include "sluice/held.hpp"

namespace sluice::lock {

/// Throws Error (bad_argument) for the token of no hold.
inline void check_token(FencingToken token) {
  if (token.value == 0)
    throw Error{Errc::bad_argument, "fencing token 0 is of no hold; pass on Held::token()"};
}

}  // namespace sluice::lock
