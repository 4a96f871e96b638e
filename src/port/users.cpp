#include "port/users.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "resp/letters.hpp"
#include "sluice/error.hpp"

namespace sluice::port {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::string_view everything = "~* &* +@all";
constexpr std::size_t hash_digits = 64;

[[noreturn]] void refuse(const User& user, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("user '{}': {}", user.name, why)};
}

std::string hash_of(std::string_view password) { return hex_of(sha256(password)); }

bool is_hash(std::string_view text) noexcept {
  return text.size() == hash_digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// A word about how the user logs in. False: it is about rights.
bool take_login(User& user, std::string_view word) {
  if (resp::is_word(word, "on")) return user.is_on = true;
  if (resp::is_word(word, "off")) return user.is_on = false, true;
  if (resp::is_word(word, "nopass")) {
    user.passwords.clear();
    return user.wants_password = false, true;
  }
  if (resp::is_word(word, "resetpass") || resp::is_word(word, "reset")) {
    user.passwords.clear();
    user.wants_password = true;
    if (resp::is_word(word, "reset")) user.words.clear(), user.is_on = false;
    return true;
  }
  if (word.starts_with('>')) {
    user.passwords.push_back(hash_of(word.substr(1)));
    return user.wants_password = true;
  }
  if (word.starts_with('#')) {
    if (!is_hash(word.substr(1)))
      refuse(user, "behind # stands the SHA-256 of a password, 64 digits 0-9 and a-f");
    user.passwords.emplace_back(word.substr(1));
    return user.wants_password = true;
  }
  return false;
}

}  // namespace

bool User::is_admitted_by(std::string_view password) const {
  if (!is_on) return false;
  if (!wants_password) return true;
  const auto hash = hash_of(password);
  return std::ranges::any_of(
      passwords, [&](const auto& right) { return equal_in_constant_time(hash, right); });
}

std::string User::describe() const {
  auto text = fmt::format("user {} {}", name, is_on ? "on" : "off");
  if (!wants_password) text += " nopass";
  for (const auto& hash : passwords) text += " #" + hash;
  return fmt::format("{} {}", text, rights ? words : everything);
}

Users::Users(const std::vector<std::string>& lines, std::string_view password) {
  for (const auto& line : lines) read(line);
  if (users_.contains("default")) return;
  auto& user = users_["default"];
  user.name = "default";
  user.is_on = true;
  user.wants_password = !password.empty();
  if (user.wants_password) user.passwords = {hash_of(password)};
}

void Users::read(const std::string& line) {
  std::string_view rest{line};
  const auto next = [&rest] {
    rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
    const auto word = rest.substr(0, rest.find_first_of(blanks));
    rest.remove_prefix(word.size());
    return word;
  };
  const auto name = next();
  if (name.empty()) throw Error{Errc::bad_argument, "a user without a name"};
  const auto [at, is_new] = users_.try_emplace(std::string{name});
  auto& user = at->second;
  user.name = name;
  if (!is_new) refuse(user, "is named twice");
  for (auto word = next(); !word.empty(); word = next())
    if (!take_login(user, word)) user.words.append(user.words.empty() ? "" : " ").append(word);
  try {
    user.rights = std::make_unique<front::Rights>(user.words, none_);
    if (user.rights->covers(front::Rights{everything, none_})) user.rights = nullptr;
  } catch (const Error& error) {
    refuse(user, error.message());
  }
}

User* Users::find(std::string_view name) noexcept {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : &found->second;
}

User* Users::newcomer() noexcept {
  auto& user = users_.find("default")->second;
  return user.is_on && !user.wants_password ? &user : nullptr;
}

}  // namespace sluice::port
