/// The console: a page for operators, served by the program itself. It is the folder console/ of
/// the repository, whose files are part of the program; they stand on the operators' API alone.
#pragma once

#include <span>
#include <string_view>

#include "http/routes.hpp"

namespace sluice::server {

/// A file of the page.
struct Asset {
  std::string_view path;  ///< "views/sale.js"
  std::string_view media;
  std::string_view sha256;  ///< of `plain`, in hex
  std::string_view plain;
  std::string_view gzip;  ///< the same, as it goes to a browser
};

/// All of them, by their paths.
std::span<const Asset> console_assets() noexcept;

/// GET /console, and the files of the page below it. They have no secret, so anybody may get them:
/// it is the API that asks who somebody is. Every answer forbids the browser scripts, styles and
/// connections of elsewhere, scripts within the page, and to be shown in another page's frame.
void add_console(http::Routes& routes);

}  // namespace sluice::server
