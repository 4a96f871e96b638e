// Any bytes as a token: in the first half of the choices as they are, in the others as a payload
// that is signed, so that what stands behind the signature is reached, too. What is taken is what
// sign() writes, to the byte.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/base64.hpp"
#include "base/sha256.hpp"
#include "sluice/token.hpp"
#include "support/fuzz_require.hpp"
#include "token/payload.hpp"

namespace {

using namespace sluice;
using test::require;

const std::string secret(32, 's');

std::string signed_text(std::string_view payload) {
  const auto text = "v1.k1." + base64url(payload);
  return text + "." + base64url(hmac_sha256(secret, text));
}

void try_token(const std::string& token) {
  static const TokenKeys keys{{{"k1", secret}}};
  const auto claims = keys.check(token, "sale:a", WallTime{});
  if (!claims) return require(!to_string(claims.error()).empty(), "a refusal without a reason");
  if (claims->nonce.empty()) return;  // sign() would take another
  require(keys.sign(*claims) == token, "a token has a twin");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  try_token(data[0] % 2 == 0 ? std::string{bytes} : signed_text(bytes));
  if (const auto claims = token::claims_of(bytes))
    require(token::payload_of(*claims) == bytes, "a payload has a twin");
  return 0;
}
