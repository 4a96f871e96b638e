/// The memory of a Lua state, counted and limited.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <new>
#include <string>
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
/// limit does not hold: where no script is there to catch the error.
struct LuaMemory {
  std::size_t used = 0;
  std::size_t limit = 0;
  bool lenient = true;
  bool refused = false;  ///< an allocation passed the limit; the one who asks resets it
  SmallPieces small;

  /// Asked before each large allocation, which may stand for much work; false refuses it.
  static constexpr std::size_t large = 64UL << 10;
  bool (*allow_large)(void* owner, std::size_t size) = nullptr;
  void* owner = nullptr;

  static void* allocate(void* self, void* old, std::size_t old_size, std::size_t new_size) {
    auto& memory = *static_cast<LuaMemory*>(self);
    if (new_size == 0) {
      memory.used -= old_size;
      memory.release(old, old_size);
      return nullptr;
    }
    if (new_size > old_size && !memory.lenient && !memory.allows(old_size, new_size))
      return nullptr;
    void* moved = memory.resize(old, old_size, new_size);
    if (moved != nullptr) memory.used += new_size - old_size;
    return moved;
  }

 private:
  bool allows(std::size_t old_size, std::size_t new_size) noexcept {
    if (used + (new_size - old_size) > limit)
      refused = true;
    else if (new_size < large || !allow_large || allow_large(owner, new_size))
      return true;
    return false;
  }

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

/// Memory of a script that is not Lua's, but counts as such: for what a C function puts together.
/// Raises Lua's error where the limit is passed.
template <class T>
class ScriptAllocator {
 public:
  using value_type = T;

  explicit ScriptAllocator(lua_State* lua) noexcept : lua_(lua) {}
  template <class U>
  ScriptAllocator(const ScriptAllocator<U>& other) noexcept : lua_(other.lua()) {}

  T* allocate(std::size_t count) {
    void* piece = nullptr;
    if (count <= SIZE_MAX / sizeof(T))
      piece = LuaMemory::allocate(&memory(), nullptr, 0, count * sizeof(T));
    if (piece == nullptr) {
      lua_pushliteral(lua_, "not enough memory");
      lua_error(lua_);
    }
    return static_cast<T*>(piece);
  }
  void deallocate(T* piece, std::size_t count) noexcept {
    LuaMemory::allocate(&memory(), piece, count * sizeof(T), 0);
  }
  lua_State* lua() const noexcept { return lua_; }
  friend bool operator==(const ScriptAllocator& one, const ScriptAllocator& other) noexcept {
    return one.lua_ == other.lua_;
  }

 private:
  LuaMemory& memory() const noexcept {
    void* memory = nullptr;
    lua_getallocf(lua_, &memory);
    return *static_cast<LuaMemory*>(memory);
  }

  lua_State* lua_;
};
using ScriptString = std::basic_string<char, std::char_traits<char>, ScriptAllocator<char>>;

}  // namespace sluice::engine
