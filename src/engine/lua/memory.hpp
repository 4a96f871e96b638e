/// The memory of a Lua state, counted and limited.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace sluice::engine {

/// Free lists of small sizes: what a script allocates is small, and the next script wants the same.
/// Lua says how large a piece is that it frees, so no piece has a header.
class SmallPieces {
 public:
  static constexpr std::size_t largest = 256;

  SmallPieces() = default;
  SmallPieces(const SmallPieces&) = delete;
  SmallPieces& operator=(const SmallPieces&) = delete;
  ~SmallPieces() {
    for (auto& list : lists_)
      while (list.first) std::free(std::exchange(list.first, list.first->next));
  }

  /// REQUIRES: 0 < size <= largest. Null: the process has no memory left.
  void* take(std::size_t size) noexcept {
    FreeList& list = list_of(size);
    if (list.first == nullptr) return std::malloc(rounded(size));
    --list.count;
    return std::exchange(list.first, list.first->next);
  }
  void put(void* piece, std::size_t size) noexcept {
    FreeList& list = list_of(size);
    if (list.count == most) return std::free(piece);
    ++list.count;
    list.first = new (piece) Piece{list.first};
  }
  /// Whether pieces of both sizes are the same.
  static bool alike(std::size_t one, std::size_t other) noexcept {
    return rounded(one) == rounded(other);
  }

 private:
  static constexpr std::size_t grain = 16;
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_WATCHED_MEMORY  // a free list would hide a use after free
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SLUICE_WATCHED_MEMORY
#endif
#if defined(SLUICE_WATCHED_MEMORY)
  static constexpr std::size_t most = 0;
#else
  static constexpr std::size_t most = 512;  // of each size are kept: 1 MiB in all
#endif

  struct Piece {
    Piece* next;
  };
  struct FreeList {
    Piece* first = nullptr;
    std::size_t count = 0;
  };

  static std::size_t rounded(std::size_t size) noexcept {
    return (size + grain - 1) / grain * grain;
  }
  FreeList& list_of(std::size_t size) noexcept { return lists_[(size - 1) / grain]; }

  std::array<FreeList, largest / grain> lists_;
};

/// Lua raises "not enough memory" where an allocation would pass the limit. While `lenient` the
/// limit does not hold: in the middle of a command, which must not be torn apart, and where no
/// script is there to catch the error.
struct LuaMemory {
  std::size_t used = 0;
  std::size_t limit = 0;
  bool lenient = true;
  SmallPieces small;

  bool exceeded() const noexcept { return used > limit; }

  static void* allocate(void* self, void* old, std::size_t old_size, std::size_t new_size) {
    auto& memory = *static_cast<LuaMemory*>(self);
    if (new_size == 0) {
      memory.used -= old_size;
      memory.release(old, old_size);
      return nullptr;
    }
    if (new_size > old_size && !memory.lenient &&
        memory.used + (new_size - old_size) > memory.limit)
      return nullptr;
    void* moved = memory.resize(old, old_size, new_size);
    if (moved != nullptr) memory.used += new_size - old_size;
    return moved;
  }

 private:
  static bool is_small(std::size_t size) noexcept { return size <= SmallPieces::largest; }

  void release(void* old, std::size_t size) noexcept {
    if (old == nullptr) return;
    is_small(size) ? small.put(old, size) : std::free(old);
  }

  void* resize(void* old, std::size_t old_size, std::size_t new_size) noexcept {
    if (old == nullptr) return is_small(new_size) ? small.take(new_size) : std::malloc(new_size);
    if (!is_small(old_size) && !is_small(new_size)) return std::realloc(old, new_size);
    if (is_small(old_size) && is_small(new_size) && SmallPieces::alike(old_size, new_size))
      return old;
    void* moved = is_small(new_size) ? small.take(new_size) : std::malloc(new_size);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, old, std::min(old_size, new_size));
    release(old, old_size);
    return moved;
  }
};

/// Lifts the limit for a while.
class LenientMemory {
 public:
  explicit LenientMemory(LuaMemory& memory) noexcept : memory_(memory), before_(memory.lenient) {
    memory.lenient = true;
  }
  ~LenientMemory() { memory_.lenient = before_; }
  LenientMemory(const LenientMemory&) = delete;
  LenientMemory& operator=(const LenientMemory&) = delete;

 private:
  LuaMemory& memory_;
  bool before_;
};

}  // namespace sluice::engine
