#include "server/pages/frame.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/instant.hpp"
#include "base/random.hpp"
#include "server/asset.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

constexpr std::string_view policy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action "
    "'self'; base-uri 'none'; frame-ancestors 'none'";

constexpr Asset assets_of_pages[] = {
#define ASSET(path, media, sha256, plain, gzip) {path, media, sha256, plain, gzip},
#include "server/pages_assets.def"
#undef ASSET
};
constexpr const Asset& sheet = *find_asset(assets_of_pages, "buyers.css");
constexpr const Asset& script = *find_asset(assets_of_pages, "buyers.js");

/// Browsers keep a file for a year: a new one has another name.
std::string_view version_of(const Asset& file) { return file.sha256.substr(0, 12); }

http::Response file_of(const Asset& file) {
  http::Response response{
      .status = 200, .media = file.media, .body = std::string{file.plain}, .fields = {}};
  response.add("Cache-Control", "public, max-age=31536000, immutable");
  response.add("X-Content-Type-Options", "nosniff");
  return response;
}

/// A crowd that was shown the page at one moment does not come back at one.
std::chrono::seconds refresh_time(std::chrono::milliseconds again) {
  const auto least = std::max(std::chrono::ceil<std::chrono::seconds>(again), 1s);
  return least +
         std::chrono::seconds{random_below(static_cast<std::uint64_t>(least.count()) / 8 + 1)};
}

struct Places {
  std::string_view currency;
  int places;
};
/// Of ISO 4217, those that have not two.
constexpr std::array odd_currencies{
    Places{"BHD", 3}, Places{"BIF", 0}, Places{"CLP", 0}, Places{"DJF", 0}, Places{"GNF", 0},
    Places{"IQD", 3}, Places{"ISK", 0}, Places{"JOD", 3}, Places{"JPY", 0}, Places{"KMF", 0},
    Places{"KRW", 0}, Places{"KWD", 3}, Places{"LYD", 3}, Places{"OMR", 3}, Places{"PYG", 0},
    Places{"RWF", 0}, Places{"TND", 3}, Places{"UGX", 0}, Places{"UYI", 0}, Places{"VND", 0},
    Places{"VUV", 0}, Places{"XAF", 0}, Places{"XOF", 0}, Places{"XPF", 0}};

}  // namespace

http::Response page(int status, const PageText& text) {
  Html whole;
  whole << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"_html
        << text.title
        << "</title>\n<link rel=\"stylesheet\" href=\"/sales/assets/buyers.css?v="_html
        << version_of(sheet) << "\">\n<script defer src=\"/sales/assets/buyers.js?v="_html
        << version_of(script) << "\"></script>\n"_html;
  if (text.again)
    whole << "<noscript><meta http-equiv=\"refresh\" content=\""_html
          << refresh_time(*text.again).count() << "\"></noscript>\n"_html;
  whole << "</head>\n<body>\n<main data-poll-ms=\""_html;
  if (text.again) whole << std::max<std::int64_t>(text.again->count(), 500);
  if (text.while_seen)
    whole << "\" data-seen-poll-ms=\""_html
          << std::max<std::int64_t>(text.while_seen->count(), 500);
  whole << "\">\n"_html << text.head << "<div id=\"status\" role=\"status\">\n"_html << text.status
        << "</div>\n<div id=\"rest\">\n"_html << text.rest
        << "</div>\n</main>\n</body>\n</html>\n"_html;
  http::Response response{
      .status = status, .media = html_media, .body = whole.text(), .fields = {}};
  response.add("Content-Security-Policy", policy)
      .add("Referrer-Policy", "same-origin")  // with no-referrer a form's Origin would be "null"
      .add("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response style_sheet() { return file_of(sheet); }
http::Response script_file() { return file_of(script); }

Html time_html(WallTime instant) {
  const auto second = std::chrono::floor<std::chrono::seconds>(instant);
  Html html;
  html << "<time datetime=\""_html << to_text(second) << "\">"_html
       << fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", second) << "</time>"_html;
  return html;
}

std::string money_text(std::int64_t amount, std::string_view currency) {
  const auto* const odd = std::ranges::find(odd_currencies, currency, &Places::currency);
  const int places = odd == odd_currencies.end() ? 2 : odd->places;
  if (places == 0) return fmt::format("{} {}", amount, currency);
  const std::int64_t unit = places == 2 ? 100 : 1000;
  return fmt::format("{}.{:0{}} {}", amount / unit, amount % unit, places, currency);
}

std::string about(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
  if (seconds <= 5) return "a few seconds";
  if (seconds < 90) return fmt::format("about {} seconds", (seconds + 4) / 5 * 5);
  if (seconds < 5400) return fmt::format("about {} minutes", (seconds + 30) / 60);
  return fmt::format("about {} hours", (seconds + 1800) / 3600);
}

}  // namespace sluice::server
