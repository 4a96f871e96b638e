/// What every synchronizer asks of its name.
#pragma once

#include <string>
#include <string_view>

#include "lock/hold/names.hpp"
#include "sluice/error.hpp"

namespace sluice::lock {

/// `name`, or Error (bad_argument) for an empty name and for one above Names::longest. `what`: "a
/// latch".
inline std::string checked_name(std::string_view what, std::string name) {
  if (name.empty())
    throw Error{Errc::bad_argument, std::string{what} + " needs a name that is not empty"};
  if (name.size() > Names::longest)
    throw Error{Errc::bad_argument, "the name of " + std::string{what} + " has at most " +
                                        std::to_string(Names::longest) + " bytes, this one " +
                                        std::to_string(name.size()) + ": " + quoted(name)};
  return name;
}

}  // namespace sluice::lock
