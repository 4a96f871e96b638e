/// The small parts of HTTP's grammar.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::http {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Letters, digits, and what is in `others`.
inline bool has_only(std::string_view text, std::string_view others) noexcept {
  return std::ranges::all_of(text, [others](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           others.find(c) != std::string_view::npos;
  });
}

/// What no text may have: a blank and a tabulator are none.
constexpr bool is_control(char c) noexcept {
  return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f';
}

/// Without regard to case, in ASCII.
inline bool same_word(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

/// Without the blanks around it that HTTP allows: they end no line (RFC 9110, 5.6.3).
inline std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Each item of a list with commas, without the blanks around it. `visit` gives false to stop.
template <class Visit>
void for_each_item(std::string_view list, Visit visit) {
  for (;;) {
    const auto comma = list.find(',');
    if (!visit(trimmed(list.substr(0, comma))) || comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

/// "%41" becomes "A"; in a query '+' becomes a blank. Empty: a '%' without two digits, a NUL, or
/// bytes that are not UTF-8.
std::optional<std::string> unescape(std::string_view text, bool is_query);

/// The other way: all but letters, digits and "-._~".
std::string escape(std::string_view text);

}  // namespace sluice::http
