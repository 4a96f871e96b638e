#include "proxy/flow/buffer.hpp"

#include <algorithm>
#include <utility>

namespace sluice::proxy::flow {

BlockPool::~BlockPool() {
  for (char* memory : spare_) delete[] memory;
}

char* BlockPool::take(std::size_t bytes) {
  in_use_.add(static_cast<std::int64_t>(bytes));
  if (bytes != block || spare_.empty()) return new char[bytes];
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
    delete[] memory;
}

bool BlockPool::trim() noexcept {
  const auto unneeded = (fewest_spare_ + 1) / 2;
  for (std::size_t i = 0; i < unneeded; ++i) {
    delete[] spare_.back();
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
    char* memory = pool_->take(capacity);
    if (used != 0) std::memcpy(memory, data_ + begin_, used);
    if (data_) pool_->give(data_, capacity_);
    data_ = memory;
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = used;
}

}  // namespace sluice::proxy::flow
