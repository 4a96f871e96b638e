/// A hash table of nodes that are found by their text: keys of a database, fields, members.
///
/// It grows and shrinks a few buckets at a time, with each insertion and removal, so that no single
/// command pays for a million moves. Meanwhile there are two arrays of buckets; the old one is
/// emptied from the front. A scan goes through the buckets in the order of their reversed bits: in
/// that order a bucket is next to all buckets that it splits into, so a cursor stays good however
/// the table is resized (Pieter Noordhuis's algorithm, from Redis's dict.c).
///
/// Texts come from outside, so the hash has a key that each process draws: a chain is as long as
/// chance makes it, whatever the texts are. So the order of a table is another in each process, and
/// a cursor is good in the process that gave it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/keyed_hash.hpp"
#include "engine/types/random.hpp"

namespace sluice::engine {

inline std::uint64_t hash_of(std::string_view text) noexcept { return KeyedHash{}(text); }

inline std::string_view key_of(const std::string& text) noexcept { return text; }

/// A node that holds a value whose text is `key_of(value)`.
template <class Value>
struct TableNode {
  TableNode* next = nullptr;
  std::uint64_t hash;
  Value value;
  std::string_view key() const noexcept { return key_of(value); }
  static void destroy(TableNode* node) noexcept { delete node; }
};

/// A Node has `Node* next`, `std::uint64_t hash` (of its key), `std::string_view key() const` and
/// `static void destroy(Node*)`. The table owns its nodes.
template <class Node>
class ChainedTable {
 public:
  ChainedTable() = default;
  ChainedTable(const ChainedTable&) = delete;
  ChainedTable& operator=(const ChainedTable&) = delete;
  ~ChainedTable() { clear(); }

  std::size_t size() const noexcept { return size_; }

  Node* find(std::string_view key) const noexcept { return find(key, hash_of(key)); }
  Node* find(std::string_view key, std::uint64_t hash) const noexcept {
    for (const auto& half : halves_) {
      if (half.count == 0) continue;
      for (Node* node = half.chain(hash); node; node = node->next)
        if (node->hash == hash && node->key() == key) return node;
    }
    return nullptr;
  }

  /// REQUIRES: no node with this key is there; `node->hash` is set.
  void insert(Node* node) {
    if (size_ >= halves_[0].count && !resizing())
      resize(halves_[0].count ? halves_[0].count * 2 : smallest);
    step();
    link(halves_[resizing() ? 1 : 0], node);
    ++size_;
  }

  bool erase(std::string_view key) {
    Node* node = remove(key, hash_of(key));
    if (node) Node::destroy(node);
    return node != nullptr;
  }
  /// Takes a node out; the caller owns it. Null: there is none.
  Node* remove(std::string_view key, std::uint64_t hash) {
    step();
    for (auto& half : halves_) {
      if (half.count == 0) continue;
      for (Node** link = &half.chain(hash); *link; link = &(*link)->next) {
        if ((*link)->hash != hash || (*link)->key() != key) continue;
        Node* node = std::exchange(*link, (*link)->next);
        --size_;
        if (size_ * 8 < halves_[0].count && halves_[0].count > smallest && !resizing()) shrink();
        return node;
      }
    }
    return nullptr;
  }

  void swap(ChainedTable& other) noexcept {
    for (int i = 0; i < 2; ++i) std::swap(halves_[i], other.halves_[i]);
    std::swap(size_, other.size_);
    std::swap(moved_, other.moved_);
  }
  void clear() noexcept {
    for (auto& half : halves_) {
      for (std::size_t i = 0; i < half.count; ++i)
        for (Node* node = half.buckets[i]; node;) Node::destroy(std::exchange(node, node->next));
      half = {};
    }
    size_ = 0;
    moved_ = 0;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& half : halves_)
      for (std::size_t i = 0; i < half.count; ++i)
        for (Node* node = half.buckets[i]; node; node = node->next) visit(*node);
  }

  /// Visits the nodes of one bucket (and of those that it splits into); gives the next cursor, 0 at
  /// the end. `visit` must not change the table.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit) const {
    if (size_ == 0) return 0;
    const Half* small = &halves_[0];
    const Half* large = &halves_[1];
    if (!resizing()) {
      visit_chain(small->chain(cursor), visit);
      return after(cursor, small->count - 1);
    }
    if (small->count > large->count) std::swap(small, large);
    visit_chain(small->chain(cursor), visit);
    const std::uint64_t split_bits = (small->count - 1) ^ (large->count - 1);
    do {
      visit_chain(large->chain(cursor), visit);
      cursor = after(cursor, large->count - 1);
    } while ((cursor & split_bits) != 0);
    return cursor;
  }

  /// A node by chance, each as likely as another: places in chains are drawn until one has a node.
  /// REQUIRES: not empty.
  Node* random(SeededRandom& rng) const {
    for (;;) {
      const auto drawn = rng.below((halves_[0].count + halves_[1].count) * longest_chain);
      const auto i = drawn / longest_chain;
      Node* node =
          i < halves_[0].count ? halves_[0].buckets[i] : halves_[1].buckets[i - halves_[0].count];
      for (auto skip = drawn % longest_chain; node && skip > 0; --skip) node = node->next;
      if (node) return node;
    }
  }

 private:
  static constexpr std::size_t smallest = 4;
  /// With at most a node a bucket one chain in 10^10 is longer.
  static constexpr std::size_t longest_chain = 12;

  struct Free {
    void operator()(Node** buckets) const noexcept { std::free(buckets); }
  };
  struct Half {
    std::unique_ptr<Node*[], Free> buckets;
    std::size_t count = 0;  ///< a power of two, or 0
    Node*& chain(std::uint64_t hash) const noexcept { return buckets[hash & (count - 1)]; }
  };

  bool resizing() const noexcept { return halves_[1].count != 0; }

  static void link(Half& half, Node* node) noexcept {
    auto& head = half.chain(node->hash);
    node->next = std::exchange(head, node);
  }

  template <class Visit>
  static void visit_chain(Node* node, Visit& visit) {
    for (; node; node = node->next) visit(*node);
  }

  void resize(std::size_t count) {
    // calloc: a large array comes from the kernel zeroed, page by page as it is used.
    auto* buckets = static_cast<Node**>(std::calloc(count, sizeof(Node*)));
    if (!buckets) throw std::bad_alloc{};
    auto& half = halves_[halves_[0].count == 0 ? 0 : 1];
    half.buckets.reset(buckets);
    half.count = count;
  }

  void shrink() {
    std::size_t count = smallest;
    while (count < size_ * 2) count *= 2;
    resize(count);
  }

  /// Moves a few buckets; looks at no more than a bounded number of empty ones.
  void step() noexcept {
    if (!resizing()) return;
    int full = 2;
    for (int seen = 0; seen < 16 && full > 0; ++seen) {
      if (moved_ == halves_[0].count) {
        halves_[0] = std::exchange(halves_[1], {});
        moved_ = 0;
        return;
      }
      Node* node = std::exchange(halves_[0].buckets[moved_++], nullptr);
      if (node) --full;
      while (node) link(halves_[1], std::exchange(node, node->next));
    }
  }

  static std::uint64_t reversed(std::uint64_t bits) noexcept {
    bits = ((bits >> 1) & 0x5555555555555555U) | ((bits & 0x5555555555555555U) << 1);
    bits = ((bits >> 2) & 0x3333333333333333U) | ((bits & 0x3333333333333333U) << 2);
    bits = ((bits >> 4) & 0x0f0f0f0f0f0f0f0fU) | ((bits & 0x0f0f0f0f0f0f0f0fU) << 4);
    return __builtin_bswap64(bits);
  }
  /// Counts up by one, in reversed bits, within `mask`.
  static std::uint64_t after(std::uint64_t cursor, std::uint64_t mask) noexcept {
    return reversed(reversed(cursor | ~mask) + 1);
  }

  Half halves_[2];  ///< [1] is in use only while resizing: the array that [0] is moved into
  std::size_t size_ = 0;
  std::size_t moved_ = 0;  ///< buckets of [0] that are moved already
};

}  // namespace sluice::engine
