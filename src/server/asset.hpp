/// A file of a page that is part of the program: a row of "server/<folder>_assets.def", which the
/// build makes of a folder beside src/.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace sluice::server {

struct Asset {
  std::string_view path;  ///< below its folder: "views/sale.js"
  std::string_view media;
  std::string_view sha256;  ///< of `plain`, in hex
  std::string_view plain;
  std::string_view gzip;  ///< the same, as it goes to a browser
};

/// `assets`: in the order of their paths. Null: it has no such file.
constexpr const Asset* find_asset(std::span<const Asset> assets, std::string_view path) {
  const auto found = std::ranges::lower_bound(assets, path, {}, &Asset::path);
  return found != assets.end() && found->path == path ? &*found : nullptr;
}

}  // namespace sluice::server
