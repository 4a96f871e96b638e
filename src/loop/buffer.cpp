#include "loop/buffer.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace sluice::loop {

namespace {

char* checked(void* memory) {
  if (!memory) throw std::bad_alloc{};
  return static_cast<char*>(memory);
}

}  // namespace

BlockPool::~BlockPool() {
  for (char* memory : spare_) std::free(memory);
}

char* BlockPool::take(std::size_t bytes) {
  in_use_.add(static_cast<std::int64_t>(bytes));
  if (bytes != block || spare_.empty()) return checked(std::malloc(bytes));
  char* memory = spare_.back();
  spare_.pop_back();
  fewest_spare_ = std::min(fewest_spare_, spare_.size());
  return memory;
}

void BlockPool::give(char* memory, std::size_t bytes) noexcept {
  in_use_.add(-static_cast<std::int64_t>(bytes));
  if (bytes == block)
    spare_.push_back(memory);
  else
    std::free(memory);
}

char* BlockPool::extend(char* memory, std::size_t bytes, std::size_t wanted) {
  char* const more = checked(std::realloc(memory, wanted));
  in_use_.add(static_cast<std::int64_t>(wanted) - static_cast<std::int64_t>(bytes));
  return more;
}

bool BlockPool::trim() noexcept {
  const auto unneeded = (fewest_spare_ + 1) / 2;
  for (std::size_t i = 0; i < unneeded; ++i) {
    std::free(spare_.back());
    spare_.pop_back();
  }
  if (unneeded != 0) spare_.shrink_to_fit();
  fewest_spare_ = spare_.size();
  return unneeded != 0;
}

void Buffer::release() noexcept {
  if (data_) pool_->give(std::exchange(data_, nullptr), capacity_);
  begin_ = end_ = capacity_ = 0;
}

bool Buffer::take_over(Buffer& other, std::string_view bytes) noexcept {
  const auto held = other.view();
  const bool is_end = bytes.size() <= held.size() && bytes.data() >= held.data() &&
                      bytes.data() + bytes.size() == held.data() + held.size();
  if (!empty() || !is_end || bytes.size() < other.capacity_ / 2 || pool_ != other.pool_)
    return false;
  release();
  begin_ = static_cast<std::size_t>(bytes.data() - other.data_);
  end_ = other.end_;
  capacity_ = std::exchange(other.capacity_, 0);
  data_ = std::exchange(other.data_, nullptr);
  other.begin_ = other.end_ = 0;
  return true;
}

void Buffer::keep(std::string_view bytes) {
  if (bytes.empty()) return;
  data_ = pool_->take(bytes.size());
  end_ = capacity_ = bytes.size();
  std::memcpy(data_, bytes.data(), bytes.size());
}

void Buffer::make_room(std::size_t bytes) {
  const auto used = size();
  // If half of it is free in front, the bytes move there; else the buffer grows.
  if (data_ && begin_ >= used && capacity_ - used >= bytes) {
    std::memcpy(data_, data_ + begin_, used);
  } else {
    const auto capacity = std::max({BlockPool::block, used + bytes, data_ ? capacity_ * 2 : 0});
    if (data_ && begin_ == 0 && capacity_ > BlockPool::block) {
      data_ = pool_->extend(data_, capacity_, capacity);
      capacity_ = capacity;
      return;
    }
    char* memory = pool_->take(capacity);
    if (used != 0) std::memcpy(memory, data_ + begin_, used);
    if (data_) pool_->give(data_, capacity_);
    data_ = memory;
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = used;
}

}  // namespace sluice::loop
