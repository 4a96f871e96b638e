#include "engine/types/chained_table.hpp"

#include "base/random.hpp"
#include "base/sip_hash.hpp"

namespace sluice::engine {

std::uint64_t hash_of(std::string_view text) noexcept {
  static const SipHash begun{random_128()};
  return SipHash{begun}.end_with(text);
}

}  // namespace sluice::engine
