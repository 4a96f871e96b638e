#include <charconv>

#include "sluice/permit_semaphore.hpp"

namespace sluice {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

std::string PermitId::text() const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::optional<PermitId> PermitId::parse(std::string_view text) {
  PermitId id;
  if (text.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const char* const first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, id.bytes[i], 16);
    if (error != std::errc{} || end != first + 2) return std::nullopt;
  }
  return id;
}

}  // namespace sluice
