#include "server/pages/languages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/small_file.hpp"
#include "http/text.hpp"
#include "server/pages/assets.hpp"
#include "sluice/error.hpp"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_texts = 256 << 10;
constexpr std::size_t most_languages = 50;
constexpr std::string_view embedded = "texts/";
constexpr std::string_view ending = ".json";

/// "de", "zh-Hans", "pt-BR"
bool is_tag(std::string_view tag) {
  const auto first = tag.substr(0, tag.find('-'));
  return first.size() >= 2 && first.size() <= 3 && tag.size() <= 35 && tag.back() != '-' &&
         tag.find("--") == tag.npos && http::has_only(tag, "-");
}

/// Of a "q=0.5" behind a ';'; 1: there is none.
double weight_of(std::string_view item) {
  const auto q = item.find("q=");
  return q == item.npos ? 1 : std::strtod(std::string{item.substr(q + 2)}.c_str(), nullptr);
}

}  // namespace

Languages::Languages(const std::string& folder) {
  const auto& english = *find_asset(assets_of_pages(), "texts/en.json");
  all_.emplace_back("en", english.plain, "en.json", nullptr);
  const auto add = [&](std::string tag, std::string_view json, const std::string& file) {
    Texts texts{std::move(tag), json, file, &all_.front()};
    const auto known = std::ranges::find(all_, texts.language(), &Texts::language);
    known == all_.end() ? void(all_.push_back(std::move(texts))) : void(*known = std::move(texts));
  };
  for (const auto& asset : assets_of_pages())
    if (asset.path.starts_with(embedded) && asset.path != english.path)
      add(fs::path{asset.path}.stem().string(), asset.plain, std::string{asset.path});
  if (folder.empty()) return;
  std::error_code failure;
  std::vector<fs::path> files;
  for (fs::directory_iterator at{folder, failure}, end; !failure && at != end;
       at.increment(failure))
    if (at->path().extension() == ending) files.push_back(at->path());
  if (failure || files.empty() || files.size() > most_languages)
    throw Error{Errc::bad_argument,
                fmt::format("{}: {}", folder,
                            failure ? failure.message()
                                    : fmt::format("1 to {} files of texts are needed, like fr.json",
                                                  most_languages))};
  std::ranges::sort(files);
  for (const auto& file : files) {
    if (!is_tag(file.stem().string()))
      throw Error{Errc::bad_argument, fmt::format("{}: its name is no language, like fr.json or "
                                                  "pt-BR.json",
                                                  file.string())};
    add(file.stem().string(), read_small_file(file.string(), largest_texts), file.string());
  }
}

const Texts* Languages::find(std::string_view tag) const {
  for (;;) {
    for (const auto& texts : all_)
      if (http::same_word(texts.language(), tag)) return &texts;
    const auto dash = tag.rfind('-');
    if (dash == tag.npos) return nullptr;
    tag = tag.substr(0, dash);
  }
}

const Texts& Languages::best(const http::Request& request) const {
  const Texts* best = &all_.front();
  double best_weight = 0;
  http::for_each_item(request.field("Accept-Language").value_or(""), [&](std::string_view item) {
    const auto end = std::min(item.find(';'), item.size());
    const auto weight = weight_of(item.substr(end));
    const auto* const texts = find(http::trimmed(item.substr(0, end)));
    if (!texts || weight <= best_weight) return true;
    best = texts;
    best_weight = weight;
    return true;
  });
  return *best;
}

}  // namespace sluice::server
