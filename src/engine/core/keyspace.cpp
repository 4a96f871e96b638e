#include "engine/core/keyspace.hpp"

#include <algorithm>
#include <cstring>

#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

std::string_view encoding(const std::string& text) noexcept {
  constexpr std::size_t embedded_at_most = 44;  // bytes that Redis allocates with the object
  if (parse_integer(text)) return "int";
  return text.size() <= embedded_at_most ? "embstr" : "raw";
}
template <class T>
std::string_view encoding(const std::unique_ptr<T>& value) noexcept {
  return value->encoding();
}
std::string_view encoding(const std::unique_ptr<Stream>&) noexcept { return "stream"; }

std::string copy(const std::string& text) { return text; }
template <class T>
std::unique_ptr<T> copy(const std::unique_ptr<T>& value) {
  return std::make_unique<T>(*value);
}

}  // namespace

std::string_view type_name(const Object& object) noexcept {
  static constexpr std::string_view names[] = {"string", "hash", "list", "set", "zset", "stream"};
  return names[object.index()];
}

Object copy_of(const Object& object) {
  return std::visit([](const auto& value) { return Object{copy(value)}; }, object);
}

std::string_view encoding_of(const Object& object) noexcept {
  return std::visit([](const auto& value) { return encoding(value); }, object);
}

// --- keys ---

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

// --- times of expiry ---

void ExpiryIndex::set(Entry& entry, std::int64_t at_ms) {
  const bool known = entry.expiry_ms != Keyspace::never;
  entry.expiry_ms = at_ms;
  if (at_ms == Keyspace::never) {
    if (!known) return;
    const auto hole = entry.expiry_place;
    const auto last = heap_.back();
    heap_.pop_back();
    if (hole == heap_.size()) return;
    up(hole, last);
    down(last.entry->expiry_place, last);
    return;
  }
  if (!known) {
    heap_.push_back({});
    return up(heap_.size() - 1, {at_ms, &entry});
  }
  up(entry.expiry_place, {at_ms, &entry});
  down(entry.expiry_place, {at_ms, &entry});
}

void ExpiryIndex::place(std::size_t i, Item item) noexcept {
  heap_[i] = item;
  item.entry->expiry_place = i;
}

void ExpiryIndex::up(std::size_t i, Item item) noexcept {
  while (i > 0) {
    const auto parent = (i - 1) / children;
    if (heap_[parent].at_ms <= item.at_ms) break;
    place(i, heap_[parent]);
    i = parent;
  }
  place(i, item);
}

void ExpiryIndex::down(std::size_t i, Item item) noexcept {
  for (;;) {
    const auto begin = i * children + 1;
    if (begin >= heap_.size()) break;
    auto least = begin;
    for (auto child = begin + 1; child < std::min(begin + children, heap_.size()); ++child)
      if (heap_[child].at_ms < heap_[least].at_ms) least = child;
    if (item.at_ms <= heap_[least].at_ms) break;
    place(i, heap_[least]);
    i = least;
  }
  place(i, item);
}

}  // namespace sluice::engine
