#include "proxy/hash/hash.hpp"

#include <algorithm>
#include <array>

#include "proxy/hash/functions.hpp"

namespace sluice::proxy {
namespace {

struct Row {
  Hash hash;
  std::string_view name;
  HashFunction of_signed;    // bytes as on x86-64
  HashFunction of_unsigned;  // as on ARM
};

template <HashFunction function>
constexpr Row plain(Hash hash, std::string_view name) {
  return {hash, name, function, function};
}

// In the order of the enumeration.
constexpr std::array rows{
    Row{Hash::one_at_a_time, "one_at_a_time", hashes::one_at_a_time<signed char>,
        hashes::one_at_a_time<unsigned char>},
    plain<hashes::md5>(Hash::md5, "md5"),
    plain<hashes::crc16>(Hash::crc16, "crc16"),
    plain<hashes::crc32>(Hash::crc32, "crc32"),
    plain<hashes::crc32a>(Hash::crc32a, "crc32a"),
    Row{Hash::fnv1_64, "fnv1_64", hashes::fnv1_64<signed char>, hashes::fnv1_64<unsigned char>},
    Row{Hash::fnv1a_64, "fnv1a_64", hashes::fnv1a_64<signed char>, hashes::fnv1a_64<unsigned char>},
    Row{Hash::fnv1_32, "fnv1_32", hashes::fnv1_32<signed char>, hashes::fnv1_32<unsigned char>},
    Row{Hash::fnv1a_32, "fnv1a_32", hashes::fnv1a_32<signed char>, hashes::fnv1a_32<unsigned char>},
    Row{Hash::hsieh, "hsieh", hashes::hsieh<signed char>, hashes::hsieh<unsigned char>},
    plain<hashes::murmur>(Hash::murmur, "murmur"),
    plain<hashes::jenkins>(Hash::jenkins, "jenkins"),
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].hash) != i) return false;
  return true;
}
static_assert(in_order());

constexpr auto hashes_of_rows = [] {
  std::array<Hash, rows.size()> all{};
  std::ranges::transform(rows, all.begin(), &Row::hash);
  return all;
}();

const Row& row_of(Hash hash) noexcept { return rows[static_cast<std::size_t>(hash)]; }

}  // namespace

HashFunction hash_function(Hash hash, CharSign sign) noexcept {
  const auto& row = row_of(hash);
  return sign == CharSign::is_signed ? row.of_signed : row.of_unsigned;
}

std::string_view to_string(Hash hash) noexcept { return row_of(hash).name; }

std::optional<Hash> find_hash(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(rows, name, &Row::name);
  if (found == rows.end()) return std::nullopt;
  return found->hash;
}

std::span<const Hash> all_hashes() noexcept { return hashes_of_rows; }

}  // namespace sluice::proxy
