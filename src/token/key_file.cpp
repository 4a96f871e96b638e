// The file of keys: a key a line, its id and its secret in base64.
#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/secret_file.hpp"
#include "sluice/error.hpp"
#include "sluice/token.hpp"

namespace sluice {
namespace {

constexpr std::string_view the_file = "the file of keys";

/// Of a line with something in it. Throws Error (bad_argument) that says what is wrong.
TokenKey key_of(std::string_view line) {
  constexpr std::string_view blanks = " \t";
  const auto end = line.find_first_of(blanks);
  const auto secret = end == line.npos ? end : line.find_first_not_of(blanks, end);
  auto bytes = secret == line.npos ? std::nullopt : from_base64(line.substr(secret));
  if (!bytes)
    throw Error{Errc::bad_argument, "a key is its id and its secret in base64, as in 'k1 c2Vj...'"};
  return {std::string{line.substr(0, end)}, std::move(*bytes)};
}

}  // namespace

TokenKeys TokenKeys::load(const std::string& path) {
  std::vector<TokenKey> keys;
  for (const auto& line : read_secret_file(the_file, path)) try {
      keys.push_back(key_of(line.text));
      TokenKeys{keys};  // the line that is wrong is the one that was read last
    } catch (const Error& wrong) {
      refuse_secret_file(the_file, path, fmt::format("line {}: {}", line.number, wrong.message()));
    }
  if (keys.empty())
    refuse_secret_file(the_file, path, "it has no key; `openssl rand -base64 32` makes a secret");
  return TokenKeys{std::move(keys)};
}

}  // namespace sluice
