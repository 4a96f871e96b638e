/// What all pages have in common: head, headers, and how times and money look.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "http/response.hpp"
#include "server/pages/html.hpp"
#include "sluice/clock.hpp"

namespace sluice::server {

inline constexpr std::string_view html_media = "text/html; charset=utf-8";

/// What a page says. Without scripts a browser loads it again after `again`, with scripts these ask
/// for it then.
struct PageText {
  Html title;   ///< of the window; one line
  Html head;    ///< what stays: what is sold
  Html status;  ///< what changes: read out to who reads by ear
  Html rest;    ///< forms and links
  std::optional<std::chrono::milliseconds> again = {};
  /// Scripts ask for it already then, if somebody looks at the page.
  std::optional<std::chrono::milliseconds> while_seen = {};
};

/// No script or style of a page but ours runs, and no other site frames it.
http::Response page(int status, const PageText& text);

/// The files that pages name.
http::Response style_sheet();
http::Response script_file();

/// "2026-11-11 12:00:00 UTC", which scripts write in the words of the place.
Html time_html(WallTime instant);
/// "12.50 CNY" of 1250: as many places as the currency has.
std::string money_text(std::int64_t amount, std::string_view currency);
/// "about 3 minutes"
std::string about(std::chrono::milliseconds time);

}  // namespace sluice::server
