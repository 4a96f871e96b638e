/// What a service says of itself at "/".
#pragma once

#include <string>
#include <vector>

#include "server/pages/frame.hpp"

namespace sluice::server {

/// The request prefers a page to JSON: a browser says so, and a program that says nothing does not.
bool takes_html(const http::Request& request);

http::Response root_page(const std::vector<std::string>& sales, const PageReader& reader);
/// Where programs go on.
http::Response root_json(const std::vector<std::string>& sales);

}  // namespace sluice::server
