/// HELLO and AUTH, as a client says them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::front {

struct Hello {
  std::optional<int> protocol;  ///< 2 or 3
  std::optional<std::pair<std::string_view, std::string_view>> login;
  std::optional<std::string_view> name;
  std::string error;  ///< not empty: what is wrong with its words, and nothing of them counts
};
/// REQUIRES: words[0] is HELLO.
Hello read_hello(std::span<const std::string_view> words);

inline constexpr std::string_view wrong_password =
    "WRONGPASS invalid username-password pair or user is disabled.";
inline constexpr std::string_view hello_without_login =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
    "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
    "RESP protocol version at the same time";
inline constexpr std::string_view no_password_wanted =
    "ERR AUTH <password> called without any password configured for the default user. Are you "
    "sure your configuration is correct?";

}  // namespace sluice::front
