/// The memory of a Lua state, counted and limited.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace sluice::engine {

/// Lua raises "not enough memory" where an allocation would pass the limit. While `lenient` the limit does not hold:
/// in the middle of a command, which must not be torn apart, and where no script is there to catch the error.
struct LuaMemory {
  std::size_t used = 0;
  std::size_t limit = 0;
  bool lenient = true;

  bool exceeded() const noexcept { return used > limit; }

  static void* allocate(void* self, void* old, std::size_t old_size, std::size_t new_size) {
    auto& memory = *static_cast<LuaMemory*>(self);
    if (new_size == 0) {
      memory.used -= old_size;
      std::free(old);
      return nullptr;
    }
    if (new_size > old_size && !memory.lenient &&
        memory.used + (new_size - old_size) > memory.limit)
      return nullptr;
    void* moved = std::realloc(old, new_size);
    if (moved != nullptr) memory.used += new_size - old_size;
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
