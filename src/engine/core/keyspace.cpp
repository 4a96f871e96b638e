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

std::size_t size_about(const Object& object) noexcept {
  constexpr std::size_t element = 64;
  if (const auto* text = std::get_if<std::string>(&object)) return text->size();
  return std::visit(
      [](const auto& value) -> std::size_t {
        if constexpr (requires { value->size(); }) return value ? value->size() * element : 0;
        return 0;
      },
      object);
}

namespace {

std::size_t bytes_of(std::string_view text) noexcept { return text.size(); }
std::size_t bytes_of(const Hash::Field& field) noexcept {
  return field.name.size() + field.value.size();
}
std::size_t bytes_of(const Scored& item) noexcept { return item.member.size(); }

/// Calls `visit(bytes)` for elements until it gives false, or for some more.
template <class T, class Visit>
void visit_sizes(const T& value, Visit&& visit) {
  std::uint64_t cursor = 0;
  bool more = true;
  do {
    cursor = value.scan(cursor, [&](const auto& element) { more = visit(bytes_of(element)); });
  } while (cursor != 0 && more);
}
template <class Visit>
void visit_sizes(const List& list, Visit&& visit) {
  for (std::size_t i = 0; i < list.size() && visit(list[i].size());) ++i;
}
template <class Visit>
void visit_sizes(const Stream& stream, Visit&& visit) {
  stream.visit({}, StreamId::max(), [&](const Stream::Entry& entry) {
    std::size_t bytes = 0;
    entry.visit_fields([&](std::string_view name, std::string_view value) {
      bytes += name.size() + value.size();
    });
    return visit(bytes);
  });
}

}  // namespace

std::size_t memory_of(const Entry& entry, std::size_t samples) {
  const auto own = sizeof(Entry) + sizeof(Entry*) + entry.key().size();
  if (const auto* text = std::get_if<std::string>(&entry.object)) {
    const bool is_apart = text->capacity() > std::string{}.capacity();
    return own + (is_apart ? text->capacity() : 0);
  }
  std::size_t elements = 0;
  std::size_t seen = 0;
  std::size_t bytes = 0;
  std::visit(
      [&](const auto& value) {
        if constexpr (requires { value->size(); }) {
          elements = value->size();
          visit_sizes(*value, [&](std::size_t size) {
            bytes += size;
            return ++seen != samples;
          });
        }
      },
      entry.object);
  return own + size_about(entry.object) + (seen > 0 ? bytes * elements / seen : 0);
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

/// The steps that take changes of the keys back.
struct Keyspace::Inverse {
  /// All that clear() removes.
  struct Cleared {
    ChainedTable<Entry> table;
    ExpiryIndex expiries;
  };

  static Keyspace& of(Undo::Step& step) { return *static_cast<Keyspace*>(step.target); }
  static Entry& entry(Undo::Step& step) { return *static_cast<Entry*>(step.other); }
  static std::int64_t expiry(const Undo::Step& step) {
    return static_cast<std::int64_t>(step.numbers[0]);
  }

  static void put_new(Undo&, Undo::Step& step, Undo::Way) {
    auto& placed = entry(step);
    of(step).expiries_.set(placed, never);
    of(step).table_.remove(placed.key(), placed.hash);
    Entry::destroy(&placed);
  }
  static void set_expiry(Undo&, Undo::Step& step, Undo::Way) {
    of(step).expiries_.set(entry(step), expiry(step));
  }
  static void erase(Undo&, Undo::Step& step, Undo::Way way) {
    if (way == Undo::Way::forget) return Entry::destroy(&entry(step));
    of(step).table_.insert(&entry(step));
    of(step).expiries_.set(entry(step), expiry(step));
  }
  /// `target`: the entry.
  static void replace_text(Undo& undo, Undo::Step& step, Undo::Way) {
    static_cast<Entry*>(step.target)->object = undo.take();
  }
  static void replace(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Object> object{static_cast<Object*>(step.other)};
    if (way == Undo::Way::back) static_cast<Entry*>(step.target)->object = std::move(*object);
  }
  /// From entry `other` back to entry `target`.
  static void move(Undo&, Undo::Step& step, Undo::Way) {
    static_cast<Entry*>(step.target)->object =
        std::exchange(entry(step).object, Object{std::string{}});
  }
  static void clear(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Cleared> cleared{static_cast<Cleared*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).table_.swap(cleared->table);
    of(step).expiries_.swap(cleared->expiries);
  }
};

Keyspace::Keyspace(const bool& keep_expired, std::int64_t& soonest_ms, Undo* const& undo)
    : keep_expired_(keep_expired), soonest_ms_(soonest_ms), undo_(undo) {}
Keyspace::~Keyspace() = default;

std::uint64_t Keyspace::recent_hash_of(std::string_view key) const {
  if (!recent_) recent_ = std::make_unique<RecentHashes>();
  return recent_->of(key);
}

Object& Keyspace::put(std::string_view key, Object object) {
  const auto hash = hash_of_key(key);
  Entry* entry = table_.find(key, hash);
  if (entry) {
    if (entry->expiry_ms != never) {
      if (undo_) expect_expiry(*entry);
      expiries_.set(*entry, never);
    }
    replace(*entry, std::move(object));
    return entry->object;
  }
  if (undo_) undo_->expect();
  if (undo_) undo_->wrote(size_about(object));
  entry = Entry::make(key, hash, std::move(object));
  table_.insert(entry);
  if (undo_) undo_->add(Inverse::put_new, this, entry);
  return entry->object;
}

void Keyspace::replace(Entry& entry, Object&& object) {
  lose(entry.object);
  if (undo_) {
    undo_->expect();
    undo_->wrote(size_about(object));
    if (auto* text = as<std::string>(entry.object)) {
      undo_->keep(std::move(*text));
      undo_->add(Inverse::replace_text, &entry);
    } else {
      auto kept = std::make_unique<Object>(std::move(entry.object));
      const auto bytes = size_about(*kept);
      undo_->add_keeping(Inverse::replace, &entry, kept.release(), bytes);
    }
  }
  entry.object = std::move(object);
}

bool Keyspace::erase(std::string_view key) {
  if (undo_) undo_->expect();
  Entry* entry = table_.remove(key, hash_of_key(key));
  if (!entry) return false;
  lose(entry->object);
  const auto expiry = static_cast<std::uint64_t>(entry->expiry_ms);
  expiries_.set(*entry, never);
  if (undo_)
    undo_->add_keeping(Inverse::erase, this, entry, size_about(entry->object), {expiry});
  else
    Entry::destroy(entry);
  return true;
}

Object& Keyspace::move(Entry& entry, Keyspace& target, std::string_view key) {
  const auto at_ms = entry.expiry_ms;
  if (undo_) undo_->expect(4);
  lose(entry.object);
  auto& placed = target.put(key, std::string{});
  auto& there = *target.table_.find(key);
  placed = std::exchange(entry.object, Object{std::string{}});
  if (undo_) undo_->add(Inverse::move, &entry, &there);
  target.set_expiry_ms(there, at_ms);
  erase(entry.key());
  return placed;
}

std::int64_t Keyspace::expiry_ms(std::string_view key) const {
  const Entry* entry = table_.find(key, hash_of_key(key));
  return entry ? entry->expiry_ms : never;
}

void Keyspace::set_expiry_ms(std::string_view key, std::int64_t at_ms) {
  if (Entry* entry = table_.find(key, hash_of_key(key))) set_expiry_ms(*entry, at_ms);
}

void Keyspace::clear() {
  lost_stream_ = true;
  if (undo_) {
    undo_->expect();
    const auto cleared_bytes = size() * sizeof(Entry);
    auto cleared = std::make_unique<Inverse::Cleared>();
    cleared->table.swap(table_);
    cleared->expiries.swap(expiries_);
    undo_->add_keeping(Inverse::clear, this, cleared.release(), cleared_bytes);
    return;
  }
  expiries_.clear();
  table_.clear();
}

void Keyspace::expect_expiry(Entry& entry) {
  undo_->expect();
  undo_->add(Inverse::set_expiry, this, &entry, {static_cast<std::uint64_t>(entry.expiry_ms)});
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
