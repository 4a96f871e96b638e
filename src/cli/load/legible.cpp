#include "cli/load/legible.hpp"

#include <fmt/format.h>

namespace sluice::load {

std::string legible(std::string_view bytes, std::size_t longest) {
  std::string text;
  for (const char c : bytes.substr(0, longest)) {
    if (c < ' ' || c > '~')
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return bytes.size() > longest ? text + "..." : text;
}

}  // namespace sluice::load
