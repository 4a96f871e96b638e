#include "proxy/watch/excerpt.hpp"

#include <fmt/format.h>

#include <iterator>

namespace sluice::proxy {

std::string excerpt(std::string_view key, std::size_t most) {
  std::string text;
  for (const char c : key.substr(0, most)) {
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (key.size() > most) text += "...";
  return text;
}

}  // namespace sluice::proxy
