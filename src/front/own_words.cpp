#include "front/own_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "resp/letters.hpp"

namespace sluice::front {
namespace {

bool is_plain(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

/// Where the value of `what` stands in "name=x lib-name=y"; npos: nowhere.
std::size_t find_value(std::string_view told, std::string_view what) noexcept {
  for (std::size_t at = 0; at < told.size();) {
    const auto end = std::min(told.find(' ', at), told.size());
    if (told.substr(at, end - at).starts_with(what) && told[at + what.size()] == '=')
      return at + what.size() + 1;
    at = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view OwnWords::of(std::string_view what) const noexcept {
  const auto at = find_value(all_, what);
  if (at == std::string::npos) return {};
  return std::string_view{all_}.substr(at, std::min(all_.find(' ', at), all_.size()) - at);
}

std::string OwnWords::take(std::string_view what, std::string_view value) {
  if (!is_plain(value))
    return fmt::format("ERR {} cannot contain spaces, newlines or special characters.",
                       what == "name" ? "Client names" : what);
  if (value.size() > longest)
    return fmt::format("ERR {} is too long: at most {} bytes", what, longest);
  keep(what, value);
  return {};
}

std::string OwnWords::take_info(std::string_view option, std::string_view value) {
  for (const std::string_view known : {"lib-name", "lib-ver"})
    if (resp::is_word(option, known)) return take(known, value);
  return fmt::format("ERR Unrecognized option '{}'", option.substr(0, 128));
}

void OwnWords::keep(std::string_view what, std::string_view value) {
  if (const auto at = find_value(all_, what); at != std::string::npos) {
    const auto begin = at - what.size() - 1;
    all_.erase(begin, all_.find(' ', at) - begin + 1);  // with the blank behind it
  }
  if (value.empty()) return;
  std::string all;  // of just the size it needs
  all.reserve(all_.size() + what.size() + value.size() + 2);
  all.append(what).append("=").append(value).append(" ").append(all_);
  all_ = std::move(all);
}

}  // namespace sluice::front
