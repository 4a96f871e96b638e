#include "proxy/storm/round.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::test {
namespace {

std::string escaped(char c) {
  switch (c) {
    case '\r': return "\\r";
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: break;
  }
  const auto number = static_cast<unsigned char>(c);
  return number < 0x20 || number >= 0x7f ? fmt::format("\\x{:02x}", number) : std::string{c};
}

}  // namespace

std::string printable(std::string_view bytes) {
  constexpr std::size_t often = 24;
  std::string text;
  while (!bytes.empty()) {
    const auto run = std::min(bytes.find_first_not_of(bytes.front()), bytes.size());
    if (run >= often)
      text += fmt::format("\"+\"{}\"*{}+\"", escaped(bytes.front()), run);
    else
      for (std::size_t i = 0; i < run; ++i) text += escaped(bytes.front());
    bytes.remove_prefix(run);
  }
  return "\"" + text + "\"";
}

std::string printable(const std::vector<Round>& rounds) {
  std::string text;
  for (std::size_t number = 0; number < rounds.size(); ++number)
    for (std::size_t client = 0; client < rounds[number].size(); ++client) {
      const auto& batch = rounds[number][client];
      if (batch.requests.empty()) continue;
      text += fmt::format(
          "  round {}, client {}{}{}{}\n", number, client, batch.connects ? ", connects" : "",
          batch.vanishes ? ", vanishes" : "",
          batch.writes.empty() ? "" : fmt::format(", {} writes", batch.writes.size() + 1));
      for (const auto& request : batch.requests) text += "    " + printable(request) + '\n';
    }
  return text;
}

}  // namespace sluice::test
