/// What no Store takes in a Batch.
#pragma once

#include <string>
#include <string_view>

#include "sluice/error.hpp"

namespace sluice {

/// Of a command that waits: the items behind it would wait, too.
inline Error blocks_its_batch(std::string_view command) {
  return Error{Errc::bad_argument,
               "a blocking command would hold up its batch; run it alone: " + std::string{command}};
}

}  // namespace sluice
