/// Who may operate the service: a key of the shop with the scope `operate`, or the cookie that a
/// login with such a key gives to a browser. One of the scope `read` sees all, and changes nothing.
#pragma once

#include <optional>
#include <string>

#include "http/response.hpp"
#include "server/ended_logins.hpp"
#include "server/failed_logins.hpp"
#include "server/shop_keys.hpp"
#include "sluice/expected.hpp"
#include "sluice/token.hpp"

namespace sluice::server {

struct Operator {
  std::string id;                   ///< of the key; "local" where everybody who gets here is one
  bool is_anybody = false;          ///< there are no keys
  bool may_act = true;              ///< false: he only sees
  std::string login = {};           ///< by which he is here: it can be ended; empty: by his key
  std::optional<WallTime> until{};  ///< of a login
};

inline constexpr std::string_view the_login_has_ended = "the login has ended: log in again";

/// Where no keys are given nobody is an operator, unless the service was told that programs and
/// browsers of this machine are the operator "local". A browser sends cookies, and what it sends to
/// this machine, in the name of any page that asks it to: so a change is taken from a browser only
/// if it says that the page is ours, and "local" only by a name of this machine, which no stranger
/// can make his own (DNS rebinding).
///
/// Guarantee: a cookie is good for 12 h at most, for this and for nothing else, and no longer than
///   the key that it was given for; copies of it end with the logout, as EndedLogins says.
/// Threads: any.
class Operators {
 public:
  struct Options {
    bool has_local = false;  ///< without keys is_local() is enough: somebody has said so
  };
  static constexpr std::chrono::hours login_lasts{12};
  static constexpr std::string_view cookie = "sluice_console";

  /// `cookies` sign them: processes with the same take each other's. REQUIRES: `keys`, `ended` and
  /// `clock` live longer.
  Operators(const ShopKeys& keys, TokenKeys cookies, EndedLogins& ended, Clock& clock,
            Options options);

  /// Who wants to see something; or the answer to him.
  Expected<Operator, http::Response> who_asks(const http::Request& request) const;
  /// Who wants to change something; or the answer to him.
  Expected<Operator, http::Response> who_acts(const http::Request& request) const;

  /// Asks the store, too, whether his login was ended; blocks. Empty: it was not, or is not known.
  std::optional<http::Response> refuse_ended(const Operator& who);

  struct Login {
    http::Response answer;
    std::string id;  ///< of who is in now; empty: nobody
  };
  Login log_in(const http::Request& request);
  struct Logout {
    http::Response answer;
    std::optional<Operator> who;  ///< whose login has ended
  };
  /// Takes the cookie out of this browser, and ends its login in this process.
  Logout log_out(const http::Request& request);

 private:
  struct Proof;
  Expected<Proof, http::Response> prove(const http::Request& request) const;
  Expected<Operator, http::Response> by_cookie(const http::Request& request) const;
  std::optional<ShopKey> find_key(std::string_view id) const;
  http::Response refuse_login(const std::string& client, ShopKeys::Refusal why);
  std::string cookie_for(const std::string& id, bool is_tls) const;

  const ShopKeys& keys_;
  const TokenKeys cookies_;
  EndedLogins& ended_;
  Clock& clock_;
  const Options options_;
  FailedLogins failures_;
};

}  // namespace sluice::server
