/// The requests that a connection has taken and not yet answered, in their order. A ring: no
/// allocation once it is warm.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "redis/operation.hpp"

namespace sluice::redis {

class InFlight {
 public:
  struct Slot {
    Operation* operation =
        nullptr;  ///< null: its caller has given up (or it is the link's own PING)
    std::size_t replies_left = 0;
    std::string_view answered_by;  ///< see Request::answered_by()
    ReadBy read_by = ReadBy::anybody;
  };

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  Slot& front() noexcept { return slots_[first_]; }
  Slot& operator[](std::size_t i) noexcept { return slots_[(first_ + i) & (slots_.size() - 1)]; }

  /// How many of them are read by that kind of reader.
  std::size_t count(ReadBy reader) const noexcept {
    return counts_[static_cast<std::size_t>(reader)];
  }

  void push(Slot slot) {
    if (size_ == slots_.size()) grow();
    (*this)[size_++] = slot;
    ++counts_[static_cast<std::size_t>(slot.read_by)];
  }
  void pop() noexcept {
    --counts_[static_cast<std::size_t>(front().read_by)];
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  /// The others were never sent.
  void keep_first(std::size_t many) noexcept {
    for (; size_ > many; --size_) --counts_[static_cast<std::size_t>((*this)[size_ - 1].read_by)];
  }

 private:
  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::array<std::size_t, 3> counts_{};
};

}  // namespace sluice::redis
