#include "engine/core/keyspace.hpp"

#include <cstring>

namespace sluice::engine {
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
