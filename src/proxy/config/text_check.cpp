#include "proxy/config/text_check.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "proxy/config/document.hpp"

namespace sluice::proxy {
namespace {

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

/// How many bytes the character that `rest` begins with takes; 0: it is none, or one that a text
/// does not have.
std::size_t size_of_character(std::string_view rest) {
  const unsigned first = byte_of(rest[0]);
  if (first < 0x80) {
    const bool control = (first < 0x20 && first != '\t' && first != '\n' && first != '\r');
    return control || first == 0x7f ? 0 : 1;
  }
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || rest.size() < size) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_of(rest[i]) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte_of(rest[i]) & 0x3f);
  }
  static constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[size] || surrogate || code > 0x10ffff ? 0 : size;
}

bool is_mark(std::string_view line, std::string_view mark) {
  return line.starts_with(mark) &&
         (line.size() == mark.size() || std::string_view{" \t\r"}.contains(line[mark.size()]));
}

void check_line(std::size_t number, std::string_view line) {
  if (is_mark(line, "---") || is_mark(line, "..."))
    throw Problem{number, fmt::format("'{}' is not allowed; a file is one document without marks",
                                      line.substr(0, 3))};
  if (line.starts_with('%'))
    throw Problem{number, "a YAML directive (%) is not allowed; remove the line"};
  for (auto rest = line; !rest.empty();) {
    const auto size = size_of_character(rest);
    if (size == 0)
      throw Problem{number, fmt::format("byte 0x{:02x} in column {} is not text in UTF-8",
                                        byte_of(rest[0]), line.size() - rest.size() + 1)};
    rest.remove_prefix(size);
  }
}

}  // namespace

void check_text(std::string_view yaml) {
  for (std::size_t number = 1; !yaml.empty(); ++number) {
    const auto end = yaml.find('\n');
    check_line(number, yaml.substr(0, end));
    yaml.remove_prefix(end == std::string_view::npos ? yaml.size() : end + 1);
  }
}

}  // namespace sluice::proxy
