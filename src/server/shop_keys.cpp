#include "server/shop_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>

#include "base/base64.hpp"
#include "base/random.hpp"
#include "base/secret_file.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "server/bearer.hpp"
#include "server/problems.hpp"
#include "sluice/error.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view the_file = "the file of the shop's keys";
constexpr std::string_view prefix = "sk.";
constexpr std::size_t longest_id = 32;
constexpr std::size_t secret_size = 43;  // 32 bytes in base64url
constexpr std::array all_scopes{Scope::orders, Scope::operate, Scope::read, Scope::tools};

bool is_id(std::string_view id) {
  constexpr std::string_view known =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !id.empty() && id.size() <= longest_id && id.find_first_not_of(known) == id.npos;
}

[[noreturn]] void refuse(std::string_view why) {
  throw Error{Errc::bad_argument, std::string{why}};
}

void check_key(const ShopKey& key) {
  if (!is_id(key.id)) refuse("the id of a key has 1 to 32 letters, digits, '-' or '_'");
  if (key.scopes.empty()) refuse(fmt::format("key '{}' is good for nothing: name a scope", key.id));
  if (key.digest.size() != 32) refuse(fmt::format("key '{}' has no SHA-256 of a secret", key.id));
}

std::vector<std::string_view> words_of(std::string_view text, char between) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(between), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string digest_of(std::string_view hex) {
  std::string digest;
  for (std::size_t at = 0; hex.size() == 64 && at < hex.size(); at += 2) {
    const auto pair = std::string{hex.substr(at, 2)};
    if (pair.find_first_not_of("0123456789abcdef") != pair.npos) return {};
    digest += static_cast<char>(std::stoi(pair, nullptr, 16));
  }
  return digest;
}

ShopKey shop_key_of(std::string_view line) {
  const auto words = words_of(line, ' ');
  if (words.size() != 3) refuse("a key is its id, its scopes and a SHA-256: `sluice serve key`");
  ShopKey key{std::string{words[0]}, scopes_of(words[1]), digest_of(words[2])};
  check_key(key);
  return key;
}

}  // namespace

std::string_view to_string(Scope scope) noexcept {
  switch (scope) {
    case Scope::orders: return "orders";
    case Scope::operate: return "operate";
    case Scope::read: return "read";
    case Scope::tools: return "tools";
  }
  return "?";
}

std::vector<Scope> scopes_of(std::string_view words) {
  std::vector<Scope> scopes;
  for (const auto word : words_of(words, ',')) {
    const auto found = std::ranges::find(all_scopes, word, &to_string);
    if (found == all_scopes.end())
      refuse(fmt::format("'{}' is no scope: there are {}", word.substr(0, 40),
                         fmt::join(all_scopes | std::views::transform(&to_string), ", ")));
    scopes.push_back(*found);
  }
  return scopes;
}

ShopKeys::ShopKeys(std::vector<ShopKey> keys) : keys_(std::move(keys)) {
  if (keys_.size() > most) refuse(fmt::format("there are more than {} keys", most));
  for (const auto& key : keys_) {
    check_key(key);
    if (std::ranges::count(keys_, key.id, &ShopKey::id) > 1)
      refuse(fmt::format("key '{}' stands there twice", key.id));
  }
}

ShopKeys ShopKeys::load(const std::string& path) {
  std::vector<ShopKey> keys;
  for (const auto& line : read_secret_file(the_file, path)) try {
      keys.push_back(shop_key_of(line.text));
      if (std::ranges::count(keys, keys.back().id, &ShopKey::id) > 1)
        refuse(fmt::format("key '{}' stands there twice", keys.back().id));
    } catch (const Error& wrong) {
      refuse_secret_file(the_file, path, fmt::format("line {}: {}", line.number, wrong.message()));
    }
  if (keys.empty())
    refuse_secret_file(the_file, path, "it has no key; `sluice serve key` makes one");
  return ShopKeys{std::move(keys)};
}

Expected<std::string, ShopKeys::Refusal> ShopKeys::check(std::string_view word, Scope scope) const {
  if (!word.starts_with(prefix)) return Unexpected{Refusal::unknown};
  const auto dot = word.find('.', prefix.size());
  if (dot == word.npos || word.size() - dot - 1 != secret_size) return Unexpected{Refusal::unknown};
  const auto key =
      std::ranges::find(keys_, word.substr(prefix.size(), dot - prefix.size()), &ShopKey::id);
  if (key == keys_.end() || !equal_in_constant_time(sha256(word.substr(dot + 1)), key->digest))
    return Unexpected{Refusal::unknown};
  if (std::ranges::find(key->scopes, scope) == key->scopes.end())
    return Unexpected{Refusal::other_scope};
  return key->id;
}

std::string ShopKey::mark() const {
  constexpr std::size_t enough = 16;
  return hex_of(sha256(digest)).substr(0, enough);
}

const ShopKey* ShopKeys::find(std::string_view id, Scope scope) const noexcept {
  const auto key = std::ranges::find(keys_, id, &ShopKey::id);
  if (key == keys_.end() || std::ranges::find(key->scopes, scope) == key->scopes.end())
    return nullptr;
  return &*key;
}

Expected<std::string, http::Response> ShopKeys::who_asks(const http::Request& request,
                                                         Scope scope) const {
  const auto word = bearer_of(request, problems::unknown_key);
  if (!word) return Unexpected{word.error()};
  auto id = check(*word, scope);
  if (id) return std::move(*id);
  if (id.error() == Refusal::other_scope)
    return Unexpected{refuse_credentials(
        problems::not_allowed, fmt::format("the key is not good for '{}'", to_string(scope)))};
  return Unexpected{refuse_credentials(problems::unknown_key, "the key is none of this service")};
}

MadeShopKey make_shop_key(const std::string& id, std::vector<Scope> scopes) {
  std::array<std::uint64_t, 4> bits{};
  const auto first = random_128();
  const auto second = random_128();
  std::ranges::copy(first, bits.begin());
  std::ranges::copy(second, bits.begin() + 2);
  std::string bytes(sizeof bits, '\0');
  std::memcpy(bytes.data(), bits.data(), sizeof bits);
  const auto secret = base64url(bytes);
  const ShopKey key{id, std::move(scopes), sha256(secret)};
  check_key(key);
  return {
      fmt::format("{}{}.{}", prefix, id, secret),
      fmt::format("{} {} {}", id, fmt::join(key.scopes | std::views::transform(&to_string), ","),
                  hex_of(key.digest))};
}

}  // namespace sluice::server
