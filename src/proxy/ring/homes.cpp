#include <utility>

#include "proxy/ring/ring.hpp"

namespace sluice::proxy {

std::string_view hashed_part(std::string_view key, std::optional<HashTag> tag) noexcept {
  if (!tag) return key;
  const auto open = key.find(tag->open);
  if (open == std::string_view::npos) return key;
  const auto close = key.find(tag->close, open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;  // a later tag is not tried
  return key.substr(open + 1, close - open - 1);
}

Homes::Homes(Hash hash, CharSign sign, std::optional<HashTag> tag, Ring ring, bool single)
    : hash_(hash_function(hash, sign)), tag_(tag), ring_(std::move(ring)), single_(single) {}

std::uint32_t Homes::hash_of(std::string_view key) const noexcept {
  const auto part = hashed_part(key, tag_);
  return part.empty() ? 0 : hash_(part);
}

std::uint32_t Homes::of(std::string_view key, std::uint32_t random) const noexcept {
  if (single_) return 0;
  if (ring_.distribution() == Distribution::random) return ring_.server_of(0, random);
  return ring_.server_of(hash_of(key));
}

}  // namespace sluice::proxy
