#include "server/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "http/response.hpp"
#include "http/text.hpp"

namespace sluice::server {
namespace {

using namespace std::string_view_literals;

constexpr Asset assets[] = {
#define ASSET(path, media, sha256, plain, gzip) {path, media, sha256, plain, gzip},
#include "server/console_assets.def"
#undef ASSET
};
constexpr auto first_page = "index.html"sv;
static_assert(std::ranges::is_sorted(assets, {}, &Asset::path));

/// What a browser may do with the page, on each answer.
constexpr std::pair<std::string_view, std::string_view> guards[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

/// A weight of zero refuses a coding: "gzip;q=0".
bool is_refused(std::string_view parameters) {
  const auto weight = parameters.find("q=");
  return weight != parameters.npos &&
         parameters.substr(weight + 2).find_first_not_of("0.") == parameters.npos;
}

bool takes_gzip(const http::Request& request) {
  bool takes = false;
  http::for_each_item(request.field("Accept-Encoding").value_or(""), [&](std::string_view item) {
    const auto end = std::min(item.find(';'), item.size());
    if (!http::same_word(http::trimmed(item.substr(0, end)), "gzip")) return true;
    takes = !is_refused(http::trimmed(item.substr(end)));
    return false;
  });
  return takes;
}

/// A browser asks each time, and mostly hears 304: a program that was brought up to date never
/// meets the page of the one before.
http::Response answer_of(const http::Request& request, const Asset& asset) {
  const bool packed = takes_gzip(request);
  const auto tag = http::entity_tag(fmt::format("{}{}", asset.sha256, packed ? "-gzip" : ""));
  http::Response response{.status = 200, .media = {}, .body = {}, .fields = {}};
  response.add("ETag", tag).add("Cache-Control", "no-cache").add("Vary", "Accept-Encoding");
  for (const auto& [name, value] : guards) response.add(name, value);
  if (http::is_not_modified(request, tag)) {
    response.status = 304;
    return response;
  }
  if (packed) response.add("Content-Encoding", "gzip");
  response.media = asset.media;
  response.body = packed ? asset.gzip : asset.plain;
  return response;
}

void answer(const http::Request& request, http::Responder& respond, std::string_view path) {
  const auto* const asset = find_asset(assets, path);
  respond.send(asset ? answer_of(request, *asset)
                     : http::problem(http::problems::not_found,
                                     fmt::format("the console has no file '{}'", path)));
}

std::string path_of_asset(const http::Request& request, bool is_in_a_folder) {
  const auto& name = request.parameter("asset");
  return is_in_a_folder ? fmt::format("{}/{}", request.parameter("folder"), name) : name;
}

}  // namespace

std::span<const Asset> console_assets() noexcept { return assets; }

void add_console(http::Routes& routes) {
  const auto add_page = [&](const char* path, const char* operation) {
    routes.add({.method = "GET",
                .path = path,
                .operation = operation,
                .summary = "The console: a page for operators",
                .answers = {{200, "The page", R"({"type":"string"})", "text/html"},
                            {304, "As If-None-Match has it", {}}},
                .handler = [](http::Request&& request, http::Responder&& respond) {
                  answer(request, respond, first_page);
                }});
  };
  const auto add_files = [&](const char* path, const char* operation, bool is_in_a_folder) {
    routes.add({.method = "GET",
                .path = path,
                .operation = operation,
                .summary = "A file of the console",
                .answers = {{200, "The file", R"({"type":"string"})", "*/*"},
                            {304, "As If-None-Match has it", {}}},
                .handler = [is_in_a_folder](http::Request&& request, http::Responder&& respond) {
                  answer(request, respond, path_of_asset(request, is_in_a_folder));
                }});
  };
  add_page("/console", "console");
  add_page("/console/", "console_root");
  add_files("/console/{asset}", "console_file", false);
  add_files("/console/{folder}/{asset}", "console_folder_file", true);
}

}  // namespace sluice::server
