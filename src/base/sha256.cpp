#include "base/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <climits>
#include <stdexcept>

namespace sluice {
namespace {

using Digest = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string text_of(const Digest& digest, unsigned int size) {
  return {digest.begin(), digest.begin() + size};
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    throw std::runtime_error{"SHA-256 is not available in this OpenSSL"};
  return text_of(digest, size);
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  if (key.size() > INT_MAX) throw std::length_error{"a key of more than 2 GiB"};
  Digest digest{};
  unsigned int size = 0;
  if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(bytes),
             bytes.size(), digest.data(), &size) == nullptr)
    throw std::runtime_error{"HMAC-SHA-256 is not available in this OpenSSL"};
  return text_of(digest, size);
}

bool equal_in_constant_time(std::string_view one, std::string_view other) {
  return one.size() == other.size() && ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace sluice
