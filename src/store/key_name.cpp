#include "store/key_name.hpp"

#include <fmt/format.h>

#include "sluice/error.hpp"
#include "sluice/value.hpp"

namespace sluice {

bool is_beside_another(std::string_view name) noexcept {
  const bool ours = name.starts_with("sluice_") || name.starts_with("redisson_");
  return ours && name.find(":{") != std::string_view::npos;
}

void check_own_keys(std::string_view what, std::string_view name) {
  const auto shown = [](std::string_view text) {
    return to_string(Value::bulk_string(std::string{text}), 200);
  };
  if (is_whole_tag(name))
    throw Error{Errc::bad_argument,
                fmt::format("{} {}: the keys beside it would be those of {}; call it so, which is "
                            "in the same slot of a cluster",
                            what, shown(name), shown(name.substr(1, name.size() - 2)))};
  if (is_beside_another(name))
    throw Error{Errc::bad_argument,
                fmt::format("{} {}: so a key beside another name is called; choose a name that "
                            "does not begin with 'sluice_' or 'redisson_'",
                            what, shown(name))};
}

}  // namespace sluice
