#include "lock/text.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "sluice/error.hpp"
#include "sluice/value.hpp"

namespace sluice::lock {

std::string checked_name(std::string_view what, std::string name) {
  if (name.empty())
    throw Error{Errc::bad_argument, std::string{what} + " needs a name that is not empty"};
  if (name.size() > longest_name)
    throw Error{Errc::bad_argument, "the name of " + std::string{what} + " has at most " +
                                        std::to_string(longest_name) + " bytes, this one " +
                                        std::to_string(name.size()) + ": " + quoted(name)};
  return name;
}

void check_range(std::string_view what, std::int64_t number, std::int64_t least,
                 std::int64_t most) {
  if (number < least || number > most)
    throw Error{Errc::bad_argument,
                fmt::format("{} must be {} to {}, not {}", what, least, most, number)};
}

std::string quoted(const std::string& name) { return to_string(Value::bulk_string(name)); }

std::int64_t number_in(std::string_view text) { return leading_number<std::int64_t>(text); }

}  // namespace sluice::lock
