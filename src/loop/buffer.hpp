/// Bytes on their way, and where their memory comes from.
///
/// An idle connection has no memory: a Buffer takes it when the first byte comes and gives it back
/// with the last. Blocks of the usual size are kept for the next Buffer, and freed when they
/// are not used (see BlockPool::trim).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/counter.hpp"

namespace sluice::loop {

/// Of one loop, and used by its thread alone.
class BlockPool {
 public:
  static constexpr std::size_t block = 16 << 10;

  ~BlockPool();

  char* take(std::size_t bytes);
  void give(char* memory, std::size_t bytes) noexcept;
  /// More of it, with what is in it. Of a large one the system moves the pages and copies nothing.
  char* extend(char* memory, std::size_t bytes, std::size_t wanted);

  /// Call it once a second: frees half of the blocks that were not used since the last call, so
  /// that the memory of a burst is given back within seconds. True: memory was freed.
  bool trim() noexcept;

  /// Bytes in use, with what was charged. Any thread.
  std::int64_t in_use() const noexcept { return in_use_.get(); }
  /// Counts bytes that a connection keeps elsewhere, or (negative) has freed.
  void charge(std::int64_t bytes) noexcept { in_use_.add(bytes); }

  /// Replies on their way from servers will be so many bytes, or (negative) have come.
  void expect(std::int64_t bytes) noexcept { expected_ += bytes; }

  /// Beyond so many bytes in use is_full(); 0: never.
  void set_limit(std::size_t bytes) noexcept { limit_ = static_cast<std::int64_t>(bytes); }
  std::size_t limit() const noexcept { return static_cast<std::size_t>(limit_); }
  bool is_full() const noexcept { return limit_ != 0 && in_use_.get() > limit_; }
  bool is_overfull() const noexcept { return limit_ != 0 && in_use_.get() > 2 * limit_; }
  /// Whether there is room for all that is in use and all that is expected.
  bool has_room() const noexcept { return limit_ == 0 || in_use_.get() + expected_ <= limit_; }

 private:
  std::vector<char*> spare_;
  std::size_t fewest_spare_ = 0;  // since the last trim()
  Counter in_use_;
  std::int64_t expected_ = 0;
  std::int64_t limit_ = 0;
};

class Buffer {
 public:
  explicit Buffer(BlockPool& pool) noexcept : pool_(&pool) {}
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool empty() const noexcept { return begin_ == end_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::string_view view() const noexcept { return {data_ + begin_, size()}; }

  void append(std::string_view bytes) {
    if (bytes.empty()) return;  // there may be no memory yet to copy nothing to
    if (capacity_ - end_ < bytes.size()) make_room(bytes.size());
    std::memcpy(data_ + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
  }

  /// `bytes`, the end of what `other` holds, and most of it: takes over its memory instead of a
  /// copy, so that a huge message is held once. `other` is empty then, and views of it stay good as
  /// long as this does not change. False: not worth it, or there is something in front already.
  bool take_over(Buffer& other, std::string_view bytes) noexcept;

  /// In no more memory than they need: nothing may follow for long. REQUIRES: empty().
  void keep(std::string_view bytes);

  /// Room for at least `bytes` behind the end, to be filled and then added().
  std::span<char> room(std::size_t bytes) {
    if (capacity_ - end_ < bytes) make_room(bytes);
    return {data_ + end_, capacity_ - end_};
  }
  void added(std::size_t bytes) noexcept { end_ += bytes; }

  void drop(std::size_t bytes) noexcept {
    begin_ += bytes;
    if (begin_ == end_) release();
  }
  void release() noexcept;

 private:
  void make_room(std::size_t bytes);

  BlockPool* pool_;
  char* data_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace sluice::loop
