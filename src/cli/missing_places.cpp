#include "cli/missing_places.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

/// Empty: what the URL names is no file, or lies in memory.
fs::path path_of(std::string_view url) {
  for (const std::string_view scheme : {"sqlite:", "embedded:"}) {
    if (!url.starts_with(scheme)) continue;
    auto path = url.substr(scheme.size());
    if (scheme == "embedded:") path = path.substr(0, path.find('?'));
    if (!path.empty() && path != ":memory:") return fs::absolute(path).lexically_normal();
  }
  return {};
}

}  // namespace

bool is_missing(const std::string& url) {
  const auto path = path_of(url);
  std::error_code unknown;
  return !path.empty() && !fs::exists(path, unknown) && !unknown;
}

void need_database(Store& store, const std::string& sale, const std::string& url, bool makes_it) {
  if (!is_missing(url)) return;
  const auto goes_into = database_of_sale(store, sale);
  if (makes_it && goes_into.empty()) return;
  const auto there =
      goes_into.empty() ? std::string{"no database yet"} : fmt::format("{}", goes_into);
  throw Error{Errc::config_mismatch,
              fmt::format("sqlite:{0} is not there, and is not made: the orders of sale '{1}' in "
                          "{2} go into {3}; say where that is (--orders). Where it is lost, "
                          "'sluice sale recover {1} --new-database' makes another one",
                          path_of(url).string(), sale, store.describe(), there)};
}

}  // namespace sluice::cli
