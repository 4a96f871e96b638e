#include "lock/text.hpp"

#include <fmt/format.h>

#include "base/hash_slot.hpp"
#include "base/integer.hpp"
#include "sluice/error.hpp"
#include "sluice/value.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

std::string checked_name(std::string_view what, std::string name) {
  if (name.empty())
    throw Error{Errc::bad_argument, std::string{what} + " needs a name that is not empty"};
  if (name.size() > longest_name)
    throw Error{Errc::bad_argument, "the name of " + std::string{what} + " has at most " +
                                        std::to_string(longest_name) + " bytes, this one " +
                                        std::to_string(name.size()) + ": " + quoted(name)};
  check_own_keys(what, name);
  return name;
}

void check_one_slot(const Store& store, std::string_view what, const std::string& name,
                    std::string_view channel) {
  if (!store.is_sharded()) return;
  if (!has_whole_tag_or_none(name))
    throw Error{Errc::bad_argument,
                fmt::format("{} {}: braces in a name are a whole tag, as in '{{shop}}:stock', or "
                            "its keys would lie in different slots of {}",
                            what, quoted(name), store.describe())};
  if (!channel.empty() && hash_slot(channel) != hash_slot(name))
    throw Error{Errc::bad_argument,
                fmt::format("{} {}: choose a name without braces: its channel {}, as Redisson "
                            "calls it, would lie in another slot of {}",
                            what, quoted(name), quoted(std::string{channel}), store.describe())};
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
