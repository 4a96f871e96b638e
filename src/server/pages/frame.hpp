/// What all pages have in common: head, headers, and the links to other languages.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http/response.hpp"
#include "server/pages/html.hpp"
#include "server/pages/reader.hpp"

namespace sluice::server {

inline constexpr std::string_view html_media = "text/html; charset=utf-8";

/// What a page says. Without scripts a browser loads it again after `again`, with scripts these ask
/// for it then.
struct PageText {
  Html title;                      ///< of the window; one line
  Html head;                       ///< what stays: what is sold
  Html status;                     ///< what changes: read out to who reads by ear
  Html rest;                       ///< forms and links
  std::string pictures_from = {};  ///< 'self', or an origin; empty: it has no picture
  std::optional<std::chrono::milliseconds> again = {};
  /// Scripts ask for it already then, if somebody looks at the page.
  std::optional<std::chrono::milliseconds> while_seen = {};
};

/// No script or style of a page but ours runs, and no other site frames it.
http::Response page(int status, const PageText& text, const PageReader& reader);

/// The files that pages name, which browsers keep for a year: a new one has another name.
http::Response style_sheet();
http::Response script_file();
http::Response kept_file(std::string_view media, std::string body);

}  // namespace sluice::server
