#include "server/pages/storefront.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <optional>

#include "base/integer.hpp"
#include "base/json_value.hpp"
#include "base/sha256.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "http/text.hpp"
#include "server/http_client.hpp"
#include "server/pages/assets.hpp"
#include "sluice/error.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t largest_shop = 1 << 20;
constexpr std::size_t most_sales_of_shop = 1000;
constexpr std::size_t longest_name = 200;
constexpr std::size_t longest_shop_text = 4000;
constexpr std::size_t largest_picture = 1 << 20;
constexpr double least_contrast = 4.5;  // WCAG 2.2, 1.4.3

struct WrongShop {
  std::string what;
};

/// By their first bytes, whatever their names say. A picture in SVG may have scripts, and is none.
std::string_view media_of(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  if (bytes.starts_with("RIFF") &&
      bytes.substr(std::min<std::size_t>(8, bytes.size()), 4) == "WEBP")
    return "image/webp";
  if (bytes.substr(std::min<std::size_t>(4, bytes.size()), 8) == "ftypavif") return "image/avif";
  return {};
}

/// "#7a1f1f" as red, green and blue.
std::optional<std::array<unsigned, 3>> colour_of(std::string_view text) {
  if (text.size() != 7 || text.front() != '#') return std::nullopt;
  std::array<unsigned, 3> colour{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto part = parse_integer<unsigned>(text.substr(1 + 2 * i, 2), 16);
    if (!part) return std::nullopt;
    colour[i] = *part;
  }
  return colour;
}

/// The relative luminance of WCAG 2.2.
double luminance(std::string_view text) {
  constexpr std::array weights{0.2126, 0.7152, 0.0722};
  double sum = 0;
  const auto colour = colour_of(text).value();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto part = colour[i] / 255.0;
    sum += weights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(std::string_view one, std::string_view other) {
  const auto [dark, light] = std::minmax({luminance(one), luminance(other)});
  return (light + 0.05) / (dark + 0.05);
}

/// The value that buyers.css gives a colour, first in light and then in dark.
std::string_view usual_colour(std::string_view name, bool is_dark) {
  const auto sheet = find_asset(assets_of_pages(), "buyers.css")->plain;
  const auto word = fmt::format("--{}: ", name);
  auto at = sheet.find(word);
  if (is_dark) at = sheet.find(word, at + 1);
  return sheet.substr(at + word.size(), 7);
}

}  // namespace

/// One file as it is read: what is wrong says where.
class ShopFile {
 public:
  explicit ShopFile(const std::string& file) : file_(file) {}

  Storefront read() {
    const auto text = read_small_file(file_, largest_shop);
    const auto shop =
        JsonValue::parse(text, {.bytes = largest_shop, .depth = 5, .members = most_sales_of_shop});
    if (!shop) throw Error{Errc::bad_argument, file_ + behind_file(text, shop.error())};
    try {
      for (const auto& [name, value] : members_of("the shop", *shop, {"name", "colours", "sales"}))
        if (name == "name")
          front_.name_ = text_of(name, value, longest_name);
        else if (name == "colours")
          read_colours(value);
        else
          read_sales(value);
    } catch (const WrongShop& wrong) {
      throw Error{Errc::bad_argument, fmt::format("{}: {}", file_, wrong.what)};
    }
    return std::move(front_);
  }

 private:
  /// `known`: their names; empty: any.
  static const JsonValue::Object& members_of(std::string_view what, const JsonValue& value,
                                             std::initializer_list<std::string_view> known) {
    const auto* const members = value.as_object();
    if (!members) throw WrongShop{fmt::format("{}: it stands in braces, {{...}}", what)};
    for (const auto& [name, unused] : *members)
      if (known.size() > 0 && std::ranges::find(known, name) == known.end())
        throw WrongShop{fmt::format("{} has no '{}'; it has {}", what, name.substr(0, 40),
                                    fmt::join(known, ", "))};
    return *members;
  }

  static const std::string& plain_text(std::string_view what, const JsonValue& value,
                                       std::size_t longest) {
    const auto* const text = value.as_text();
    if (!text) throw WrongShop{fmt::format("{}: a text in quotes is needed", what)};
    if (text->size() > longest)
      throw WrongShop{fmt::format("{}: it is longer than {} bytes", what, longest)};
    if (std::ranges::any_of(*text, [](char c) { return http::is_control(c) && c != '\n'; }))
      throw WrongShop{fmt::format("{}: it has control characters", what)};
    return *text;
  }

  static ShopText text_of(std::string_view what, const JsonValue& value, std::size_t longest) {
    ShopText text;
    if (!value.as_object()) {
      text.put(std::string{ShopText::for_all}, plain_text(what, value, longest));
      return text;
    }
    for (const auto& [language, one] : *value.as_object())
      text.put(language, plain_text(fmt::format("{}.{}", what, language), one, longest));
    return text;
  }

  void read_sales(const JsonValue& value) {
    for (const auto& [sale, about] : members_of("sales", value, {})) {
      const auto what = "sales." + sale.substr(0, 128);
      auto& look = front_.sales_[sale];
      for (const auto& [name, one] :
           members_of(what, about, {"name", "text", "picture", "picture-text"})) {
        const auto place = fmt::format("{}.{}", what, name);
        if (name == "name")
          look.name = text_of(place, one, longest_name);
        else if (name == "text")
          look.text = text_of(place, one, longest_shop_text);
        else if (name == "picture-text")
          look.picture_text = text_of(place, one, longest_name);
        else
          look.picture = picture_of(place, plain_text(place, one, 2000));
      }
    }
  }

  ShopPicture picture_of(const std::string& what, const std::string& place) const {
    const bool is_url = place.find("://") != place.npos;
    return is_url ? foreign_picture(what, place) : own_picture(what, place);
  }

  /// The browser fetches it; the policy of the page names its host alone.
  static ShopPicture foreign_picture(const std::string& what, const std::string& url) {
    const auto refuse = [&](std::string_view why) {
      throw WrongShop{
          fmt::format("{}: {}: write a URL like https://cdn.example/tea.jpg, or the name "
                      "of a file beside the shop's",
                      what, why)};
    };
    try {
      check_http_url(url);
    } catch (const Error& wrong) {
      refuse(wrong.message());
    }
    ShopPicture picture{.url = url, .origin = origin_of(url)};
    if (!picture.origin.starts_with("https://")) refuse("a picture of another host comes by https");
    if (!http::has_only(picture.origin, ".-:/[]")) refuse("its host has other characters");
    return picture;
  }

  ShopPicture own_picture(const std::string& what, const std::string& name) const {
    namespace fs = std::filesystem;
    if (name.empty() || fs::path{name}.filename() != name || name.starts_with('.'))
      throw WrongShop{fmt::format("{}: '{}' is no name of a file beside {}", what, name, file_)};
    ShopPicture picture;
    const auto path = (fs::path{file_}.parent_path() / name).string();
    try {
      picture.bytes = read_small_file(path, largest_picture);
    } catch (const Error& failure) {
      throw WrongShop{fmt::format("{}: {}", what, failure.message())};
    }
    picture.media = media_of(picture.bytes);
    if (picture.media.empty())
      throw WrongShop{
          fmt::format("{}: {} is no picture: PNG, JPEG, WebP, AVIF or GIF is taken", what, path)};
    picture.url =
        fmt::format("{}{}", Storefront::pictures, hex_of(sha256(picture.bytes)).substr(0, 24));
    return picture;
  }

  void read_colours(const JsonValue& value) {
    for (const auto& [scheme, colours] : members_of("colours", value, {"light", "dark"})) {
      const auto what = "colours." + scheme;
      std::string accent;
      std::string paper;
      for (const auto& [name, colour] : members_of(what, colours, {"accent", "paper"})) {
        const auto place = fmt::format("{}.{}", what, name);
        if (!colour_of(plain_text(place, colour, 100)))
          throw WrongShop{
              fmt::format("{}: '{}' is no colour, like #7a1f1f", place, *colour.as_text())};
        (name == "accent" ? accent : paper) = *colour.as_text();
      }
      front_.colours_ += sheet_of(what, scheme == "dark", accent, paper);
    }
  }

  /// Links and buttons have the accent, on paper and on cards; the ink of a page stands on paper.
  static std::string sheet_of(const std::string& what, bool is_dark, const std::string& accent,
                              const std::string& paper) {
    const auto usual = [&](std::string_view name) { return usual_colour(name, is_dark); };
    const auto on = paper.empty() ? usual("paper") : std::string_view{paper};
    const auto shown = accent.empty() ? usual("deed") : std::string_view{accent};
    const auto need = [&](std::string_view text, std::string_view ground) {
      if (const auto found = contrast(text, ground); found < least_contrast)
        throw WrongShop{
            fmt::format("{}: {} on {} has a contrast of {:.1f}, and a reader needs {}: take "
                        "a {} accent, or a {} paper",
                        what, text, ground, found, least_contrast, is_dark ? "lighter" : "darker",
                        is_dark ? "darker" : "lighter")};
    };
    need(shown, on);
    need(shown, usual("card"));
    need(usual("ink"), on);
    std::string rows;
    if (!paper.empty()) rows += fmt::format(" --paper: {};", paper);
    if (!accent.empty())
      rows += fmt::format(" --deed: {}; --deed-ink: {};", accent,
                          contrast(accent, "#ffffff") >= least_contrast ? "#ffffff" : "#000000");
    return fmt::format("@media (prefers-color-scheme: {}) {{ :root {{{} }} }}\n",
                       is_dark ? "dark" : "light", rows);
  }

  const std::string& file_;
  Storefront front_;
};

std::string_view ShopText::in(std::string_view language) const {
  for (auto tag = language; !tag.empty();) {
    if (const auto found = by_language_.find(tag); found != by_language_.end())
      return found->second;
    const auto dash = tag.rfind('-');
    tag = dash == tag.npos ? std::string_view{} : tag.substr(0, dash);
  }
  if (const auto english = by_language_.find("en"); english != by_language_.end())
    return english->second;
  return by_language_.empty() ? std::string_view{} : by_language_.begin()->second;
}

Storefront Storefront::load(const std::string& file) { return ShopFile{file}.read(); }

const SaleLook* Storefront::find(std::string_view sale) const {
  const auto found = sales_.find(sale);
  return found == sales_.end() ? nullptr : &found->second;
}

std::string_view Storefront::name_of(std::string_view sale, const Texts& texts) const {
  const auto* const look = find(sale);
  const auto name = look ? look->name.in(texts.language()) : std::string_view{};
  return name.empty() ? sale : name;
}

const ShopPicture* Storefront::find_picture(std::string_view name) const {
  for (const auto& [sale, look] : sales_)
    if (look.picture.origin.empty() && !look.picture.url.empty() &&
        look.picture.url.substr(pictures.size()) == name)
      return &look.picture;
  return nullptr;
}

}  // namespace sluice::server
