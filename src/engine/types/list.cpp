#include "engine/types/list.hpp"

#include <algorithm>
#include <utility>

namespace sluice::engine {

void List::push(End end, std::string_view item) {
  if (end == End::left)
    items_.emplace_front(item);
  else
    items_.emplace_back(item);
}

std::string List::pop(End end) {
  std::string item = std::move(end == End::left ? items_.front() : items_.back());
  if (end == End::left)
    items_.pop_front();
  else
    items_.pop_back();
  return item;
}

std::optional<std::size_t> List::index_of(std::int64_t place) const noexcept {
  const auto count = static_cast<std::int64_t>(items_.size());
  if (place < 0) place += count;
  if (place < 0 || place >= count) return std::nullopt;
  return static_cast<std::size_t>(place);
}

void List::insert(std::size_t before, std::string_view item) {
  items_.emplace(items_.begin() + static_cast<std::ptrdiff_t>(before), item);
}

std::size_t List::remove(std::string_view item, std::int64_t count) {
  // -INT64_MIN does not exist, and no list is that long.
  auto left = count == 0 ? items_.size()
                         : static_cast<std::size_t>(count < 0 ? -(count + 1) : count - 1) + 1;
  const auto wanted = [&](const std::string& other) {
    return left > 0 && other == item && left-- > 0;
  };
  const auto before = items_.size();
  if (count < 0) {
    const auto kept = std::remove_if(items_.rbegin(), items_.rend(), wanted);
    items_.erase(items_.begin(), kept.base());
  } else {
    items_.erase(std::remove_if(items_.begin(), items_.end(), wanted), items_.end());
  }
  return before - items_.size();
}

void List::trim(std::size_t first, std::size_t last) {
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(last), items_.end());
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace sluice::engine
