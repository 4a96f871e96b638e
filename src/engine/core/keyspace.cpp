#include "engine/core/keyspace.hpp"

#include <cstring>
#include <new>

#include "engine/core/object.hpp"

namespace sluice::engine {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Number>
std::uint64_t load(const char* at) noexcept {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

/// Eight bytes at a time through a multiplication whose halves are folded together, as wyhash and
/// MUM do it.
std::uint64_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t odd1 = 0xa0761d6478bd642fULL;
  constexpr std::uint64_t odd2 = 0xe7037ed1a0b428dbULL;
  const char* at = text.data();
  auto left = text.size();
  std::uint64_t hash = left * odd2 ^ odd1;
  for (; left > 16; at += 16, left -= 16)
    hash = folded(load<std::uint64_t>(at) ^ odd1, load<std::uint64_t>(at + 8) ^ hash);
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (left >= 8) {  // the last 16 bytes in two loads that may overlap
    a = load<std::uint64_t>(at);
    b = load<std::uint64_t>(at + left - 8);
  } else if (left >= 4) {
    a = load<std::uint32_t>(at);
    b = load<std::uint32_t>(at + left - 4);
  } else if (left > 0) {
    a = static_cast<std::uint64_t>(static_cast<unsigned char>(at[0])) << 16 |
        static_cast<std::uint64_t>(static_cast<unsigned char>(at[left / 2])) << 8 |
        static_cast<unsigned char>(at[left - 1]);
  }
  return folded(folded(a ^ odd1, b ^ hash) ^ odd2, hash ^ odd1);
}

Entry* Entry::make(std::string_view key, std::uint64_t hash, Object&& object) {
  void* memory = ::operator new(sizeof(Entry) + key.size());
  auto* entry =
      new (memory) Entry{.hash = hash, .key_size = key.size(), .object = std::move(object)};
  std::memcpy(static_cast<void*>(entry + 1), key.data(), key.size());
  return entry;
}

void Entry::destroy(Entry* entry) noexcept {
  entry->~Entry();
  ::operator delete(entry);
}

Keyspace::Keyspace(const bool& keep_expired, std::int64_t& soonest_ms)
    : keep_expired_(keep_expired), soonest_ms_(soonest_ms) {}
Keyspace::~Keyspace() = default;

Object& Keyspace::put(std::string_view key, Object object) {
  const auto hash = hash_of(key);
  Entry* entry = table_.find(key, hash);
  if (entry) {
    expiries_.set(*entry, never);
    entry->object = std::move(object);
  } else {
    entry = Entry::make(key, hash, std::move(object));
    table_.insert(entry);
  }
  return entry->object;
}

bool Keyspace::erase(std::string_view key) {
  Entry* entry = table_.remove(key, hash_of(key));
  if (!entry) return false;
  expiries_.set(*entry, never);
  Entry::destroy(entry);
  return true;
}

std::int64_t Keyspace::expiry_ms(std::string_view key) const {
  const Entry* entry = table_.find(key);
  return entry ? entry->expiry_ms : never;
}

void Keyspace::set_expiry_ms(std::string_view key, std::int64_t at_ms) {
  if (Entry* entry = table_.find(key)) set_expiry_ms(*entry, at_ms);
}

void Keyspace::clear() {
  expiries_.clear();
  table_.clear();
}

Entry* Keyspace::expire(Entry* entry) {
  expired_.emplace_back(entry->key());
  erase(expired_.back());
  return nullptr;
}

bool Keyspace::expire_first(std::int64_t now_ms) {
  if (expiries_.empty() || keep_expired_ || now_ms <= expiries_.first_ms()) return false;
  expire(expiries_.first());
  return true;
}

}  // namespace sluice::engine
