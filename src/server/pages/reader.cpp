#include "server/pages/reader.hpp"

#include <chrono>

#include "server/pages/cookies.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view language_cookie = "sluice_lang";
constexpr std::chrono::hours language_lasts{24 * 365};

}  // namespace

PageReader PageReader::of(const http::Request& request, const PagesOptions& options) {
  const auto kept = cookie_of(request, language_cookie);
  const auto wished = request.query("lang");
  const auto* const chosen = wished ? options.languages.find(*wished) : nullptr;
  const auto* texts = chosen ? chosen : options.languages.find(kept);
  if (!texts) texts = &options.languages.best(request);
  // A form has no page of its own: its answer stands in the page of its sale.
  PageReader reader{.options = options,
                    .texts = *texts,
                    .place = request.method() == "POST" ? path_of_page(request.parameter("sale"))
                                                        : std::string{request.path()}};
  if (chosen && chosen->language() != kept)
    reader.cookie = cookie_text(request, {.name = language_cookie,
                                          .value = chosen->language(),
                                          .path = "/",
                                          .max_age = language_lasts});
  return reader;
}

}  // namespace sluice::server
