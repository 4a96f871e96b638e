#include "server/pages/frame.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "server/pages/assets.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

constexpr std::string_view usual_policy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action "
    "'self'; base-uri 'none'; frame-ancestors 'none'";

constexpr Asset page_assets[] = {
#define ASSET(path, media, sha256, plain, gzip) {path, media, sha256, plain, gzip},
#include "server/pages_assets.def"
#undef ASSET
};
constexpr const Asset& sheet = *find_asset(page_assets, "buyers.css");
constexpr const Asset& script = *find_asset(page_assets, "buyers.js");

std::string_view version_of(const Asset& file) { return file.sha256.substr(0, 12); }

/// A crowd that was shown the page at one moment does not come back at one.
std::chrono::seconds refresh_time(std::chrono::milliseconds again) {
  const auto least = std::max(std::chrono::ceil<std::chrono::seconds>(again), 1s);
  return least +
         std::chrono::seconds{random_below(static_cast<std::uint64_t>(least.count()) / 8 + 1)};
}

/// Colours of the shop are a file of that text.
std::string version_of(const std::string& colours) { return hex_of(sha256(colours)).substr(0, 12); }

void put_languages(Html& whole, const PageReader& reader) {
  if (reader.options.languages.all().size() < 2) return;
  whole << "<footer><nav aria-label=\""_html << reader.say("languages") << "\">\n"_html;
  for (const auto& other : reader.options.languages.all()) {
    const auto& tag = other.language();
    if (tag == reader.texts.language())
      whole << "<span aria-current=\"true\">"_html << other.say("language.name")
            << "</span>\n"_html;
    else
      whole << "<a href=\""_html << reader.place << "?lang="_html << tag << "\" lang=\""_html << tag
            << "\" hreflang=\""_html << tag << "\">"_html << other.say("language.name")
            << "</a>\n"_html;
  }
  whole << "</nav></footer>\n"_html;
}

void put_head(Html& whole, const PageText& text, const PageReader& reader) {
  const auto& front = reader.options.front;
  const auto direction = reader.say("language.direction");
  whole << "<!DOCTYPE html>\n<html lang=\""_html << reader.texts.language();
  if (direction.text() != "ltr") whole << "\" dir=\""_html << direction;
  whole << "\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"_html
        << text.title;
  if (const auto name = front.name(reader.texts); !name.empty()) whole << " – "_html << name;
  whole << "</title>\n<link rel=\"stylesheet\" href=\"/sales/assets/buyers.css?v="_html
        << version_of(sheet) << "\">\n"_html;
  if (!front.colours().empty())
    whole << "<link rel=\"stylesheet\" href=\"/sales/assets/shop.css?v="_html
          << version_of(front.colours()) << "\">\n"_html;
  whole << "<script defer src=\"/sales/assets/buyers.js?v="_html << version_of(script)
        << "\"></script>\n"_html;
  if (text.again)
    whole << "<noscript><meta http-equiv=\"refresh\" content=\""_html
          << refresh_time(*text.again).count() << "\"></noscript>\n"_html;
  whole << "</head>\n<body>\n"_html;
  if (const auto name = front.name(reader.texts); !name.empty())
    whole << "<header>"_html << name << "</header>\n"_html;
}

}  // namespace

http::Response page(int status, const PageText& text, const PageReader& reader) {
  Html whole;
  put_head(whole, text, reader);
  whole << "<main data-poll-ms=\""_html;
  if (text.again) whole << std::max<std::int64_t>(text.again->count(), 500);
  if (text.while_seen)
    whole << "\" data-seen-poll-ms=\""_html
          << std::max<std::int64_t>(text.while_seen->count(), 500);
  whole << "\">\n"_html << text.head << "<div id=\"status\" role=\"status\">\n"_html << text.status
        << "</div>\n<div id=\"rest\">\n"_html << text.rest << "</div>\n</main>\n"_html;
  put_languages(whole, reader);
  whole << "</body>\n</html>\n"_html;
  http::Response response{
      .status = status, .media = html_media, .body = whole.text(), .fields = {}};
  auto policy = std::string{usual_policy};
  if (!text.pictures_from.empty()) policy += "; img-src " + text.pictures_from;
  response.add("Content-Security-Policy", policy)
      .add("Referrer-Policy", "same-origin")  // with no-referrer a form's Origin would be "null"
      .add("X-Content-Type-Options", "nosniff")
      .add("Content-Language", reader.texts.language());
  if (!reader.cookie.empty()) response.add("Set-Cookie", reader.cookie);
  return response;
}

http::Response kept_file(std::string_view media, std::string body) {
  http::Response response{.status = 200, .media = media, .body = std::move(body), .fields = {}};
  response.add("Cache-Control", "public, max-age=31536000, immutable");
  response.add("X-Content-Type-Options", "nosniff");
  return response;
}

std::span<const Asset> assets_of_pages() noexcept { return page_assets; }
http::Response style_sheet() { return kept_file(sheet.media, std::string{sheet.plain}); }
http::Response script_file() { return kept_file(script.media, std::string{script.plain}); }

}  // namespace sluice::server
