#include "base/base64.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace sluice {
namespace {

void replace(std::string& text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a NUL
  text.resize(static_cast<std::size_t>(
      ::EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()))));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.empty()) return std::string{};
  std::string bytes(text.size() / 4 * 3, '\0');
  if (::EVP_DecodeBlock(bytes_of(bytes), bytes_of(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  // OpenSSL counts the bytes that padding stands for, and passes over spaces and bits that are
  // none.
  bytes.resize(bytes.size() - (text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U));
  if (base64(bytes) != text) return std::nullopt;
  return bytes;
}

std::string base64url(std::string_view bytes) {
  std::string text = base64(bytes);
  text.resize(std::min(text.find('='), text.size()));
  replace(text, '+', '-');
  replace(text, '/', '_');
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  if (text.find_first_of("+/=") != text.npos || text.size() % 4 == 1) return std::nullopt;
  std::string standard{text};
  replace(standard, '-', '+');
  replace(standard, '_', '/');
  standard.resize((standard.size() + 3) / 4 * 4, '=');
  return from_base64(standard);
}

}  // namespace sluice
