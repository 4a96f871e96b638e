#include "base/keyed_hash.hpp"

#include "base/random.hpp"
#include "base/sip_hash.hpp"

namespace sluice {

std::size_t KeyedHash::operator()(std::string_view text) const noexcept {
  static const SipHash begun{random_128()};
  return SipHash{begun}.end_with(text);
}

}  // namespace sluice
