// Any bytes as a filter: what Guava or Parquet wrote, a file, the config of a shared one. They are
// refused with an Error, or they are a filter, which keeps what is added to it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bloom/hash.hpp"
#include "bloom/shared/definition.hpp"
#include "engine/embedded_store.hpp"
#include "sluice/bloom_filter.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "support/fuzz_require.hpp"

namespace {

using namespace sluice;
using test::require;

void check(BloomFilter filter) {
  const auto info = filter.info();
  require(info.bits > 0 && info.saturation >= 0 && info.saturation <= 1, "an impossible filter");
  filter.add("key");
  require(filter.contains("key"), "a filter forgets");
}

/// A file without a folder.
class File {
 public:
  explicit File(std::string_view bytes) : number_(::memfd_create("filter", 0)) {
    require(number_ >= 0 &&
                ::write(number_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "no memory for a file");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(number_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

/// Its head says how long it is, and its checksum is right.
std::string summed(std::string bytes, std::size_t size_at, std::size_t checksum_at) {
  if (bytes.size() < checksum_at + 8) return bytes;
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + size_at, &size, sizeof size);
  bloom::Checksum sum;
  const std::string_view view{bytes};
  for (const auto part : {view.substr(0, checksum_at), view.substr(checksum_at + 8)})
    sum.add(std::as_bytes(std::span{part.data(), part.size()}));
  const auto value = sum.value();
  std::memcpy(bytes.data() + checksum_at, &value, sizeof value);
  return bytes;
}

void try_guava(std::string_view bytes) {
  const auto filter = BloomFilter::from_guava(bytes);
  require(filter.to_guava() == bytes, "Guava would read another filter");
  check(filter);
}

void try_parquet(std::string_view bytes) {
  const auto filter = BloomFilter::from_parquet(bytes);
  require(filter.to_parquet() == bytes, "Parquet would read another filter");
  check(filter);
}

void try_file(const std::string& bytes) {
  const File file{bytes};
  bool is_mapped = false;
  try {
    check(BloomFilter::map(file.path()));
    is_mapped = true;
  } catch (const Error&) {
  }
  const auto filter = BloomFilter::load(file.path());
  require(is_mapped, "a file that is loaded cannot be mapped");
  check(filter);
}

void try_shared_file(const std::string& bytes) {
  static const auto store = engine::open_embedded();
  const File file{bytes};
  SharedBloomFilter filter{*store, "filter"};
  filter.load(file.path()).get();
  const auto info = filter.info().get();
  require(!info.links.empty() && info.error_rate_now >= 0 && info.error_rate_now <= 1,
          "an impossible shared filter");
  constexpr std::uint64_t few = 1 << 20;  // bits: a link that is made has twice as many
  if (info.links.back().bits < few) {
    (void)filter.add("key").get();
    require(filter.contains("key").get(), "a shared filter forgets");
  }
  require(filter.remove().get(), "a filter that was not there");
}

/// Fields by lines: size, hashIterations, sluice:links.
void try_config(std::string_view text) {
  std::vector<Value> fields;
  for (int i = 0; i < 3; ++i) {
    const auto end = std::min(text.find('\n'), text.size());
    fields.push_back(end == 0 ? Value{} : Value::bulk_string(std::string{text.substr(0, end)}));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  fields.resize(bloom::Definition::fields);
  const auto found = bloom::Definition::of(Value::array(fields), "config");
  if (!found.exists() || !found.grows()) return;
  fields[2] = Value::bulk_string(found.longer_chain());
  const auto longer = bloom::Definition::of(Value::array(fields), "config");
  require(longer.links.size() == found.links.size() + 1, "a chain that grew is none");
}

void try_any(unsigned choice, std::string_view bytes) {
  const bool is_summed = (choice & 8) != 0;
  switch (choice % 8) {
    case 0: return try_guava(bytes);
    case 1: return try_parquet(bytes);
    case 2: return try_file(is_summed ? summed(std::string{bytes}, 32, 64) : std::string{bytes});
    case 3:
      return try_shared_file(is_summed ? summed(std::string{bytes}, 48, 56) : std::string{bytes});
    default: return try_config(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    try_any(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error& refused) {
    require(!refused.message().empty(), "a refusal without a reason");
  }
  return 0;
}
