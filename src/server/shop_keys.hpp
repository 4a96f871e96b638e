/// The shop's own keys: its programs and its operators prove themselves by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/response.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

/// What a key is good for.
enum class Scope : std::uint8_t {
  orders,   ///< any buyer's orders: to read, cancel and refund them
  operate,  ///< the console: to close a sale, revive, settle, pause
  read,     ///< to see what the console shows, and to change nothing
  tools,    ///< locks, numbers, ids and Bloom filters
};
/// "orders" ...
std::string_view to_string(Scope scope) noexcept;

/// Who of the shop asks.
struct ShopKey {
  std::string id;             ///< 1 to 32 letters, digits, '-' or '_'; stands in journals
  std::vector<Scope> scopes;  ///< at least one
  std::string digest;         ///< SHA-256 of the secret

  /// Tells this key from another one under the same id, and nothing of its secret.
  std::string mark() const;
};

/// A key is `sk.ID.SECRET`, its secret 32 random bytes in base64url. The file has a key a line, `ID
/// SCOPE,SCOPE HEX`: HEX is the SHA-256 of the secret, so who reads the file cannot ask with it. To
/// change a key, add a line for the new one, and take the old line away when nobody uses it.
///
/// Threads: any.
class ShopKeys {
 public:
  static constexpr std::size_t most = 256;

  /// None: nobody is let in.
  ShopKeys() = default;
  /// Throws Error{bad_argument}: more than `most`, an id or digest of another form, an id twice, no
  /// scope.
  explicit ShopKeys(std::vector<ShopKey> keys);
  /// Throws Error{bad_argument} that names the file and the line.
  static ShopKeys load(const std::string& path);

  bool is_empty() const noexcept { return keys_.empty(); }
  /// The id of the key that `word` is; empty: it is none, or not for that. About a microsecond.
  enum class Refusal : std::uint8_t { unknown, other_scope };
  Expected<std::string, Refusal> check(std::string_view word, Scope scope) const;
  /// Null: there is none with that id, or it is not for that.
  const ShopKey* find(std::string_view id, Scope scope) const noexcept;
  /// The id of the key that a request brings in `Authorization: Bearer`, or the answer to it: 401
  /// unknown-key, 403 not-allowed.
  Expected<std::string, http::Response> who_asks(const http::Request& request, Scope scope) const;

  /// For openapi(): the name of these credentials.
  static constexpr std::string_view credentials = "shop";

 private:
  std::vector<ShopKey> keys_;
};

/// A new key, and the line of the file that lets it in. Throws Error{bad_argument}.
struct MadeShopKey {
  std::string key;
  std::string line;
};
MadeShopKey make_shop_key(const std::string& id, std::vector<Scope> scopes);

/// "orders,operate". Throws Error{bad_argument}.
std::vector<Scope> scopes_of(std::string_view words);

}  // namespace sluice::server
