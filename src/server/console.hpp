/// The console: a page for operators, served by the program itself. It is the folder console/ of
/// the repository, whose files are part of the program; they stand on the operators' API alone.
#pragma once

#include <span>

#include "http/routes.hpp"
#include "server/asset.hpp"

namespace sluice::server {

/// The files of the page, in the order of their paths.
std::span<const Asset> console_assets() noexcept;

/// GET /console, and the files of the page below it. They have no secret, so anybody may get them:
/// it is the API that asks who somebody is. Every answer forbids the browser scripts, styles and
/// connections of elsewhere, scripts within the page, and to be shown in another page's frame.
void add_console(http::Routes& routes);

}  // namespace sluice::server
