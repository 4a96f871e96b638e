/// A list: fast at both ends and by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "engine/types/undo.hpp"

namespace sluice::engine {

enum class End { left, right };

class List {
 public:
  std::size_t size() const noexcept { return items_.size(); }
  void push(End end, std::string_view item, Undo* undo);
  /// REQUIRES: size() > 0.
  std::string pop(End end, Undo* undo);

  /// Negative: from the end. Empty: outside.
  std::optional<std::size_t> index_of(std::int64_t place) const noexcept;
  const std::string& operator[](std::size_t i) const noexcept { return items_[i]; }
  void set(std::size_t i, std::string_view item, Undo* undo);

  void insert(std::size_t before, std::string_view item, Undo* undo);
  /// Removes items equal to `item`: the first `count` from the left, or from the right where it is
  /// negative; 0: all.
  std::size_t remove(std::string_view item, std::int64_t count, Undo* undo);
  /// Keeps [first, last).
  void trim(std::size_t first, std::size_t last, Undo* undo);

  /// As 7.0: Redis keeps up to 8 KiB in one listpack (list-max-listpack-size -2) and calls that too
  /// a quicklist.
  std::string_view encoding() const noexcept { return "quicklist"; }

 private:
  struct Inverse;

  std::deque<std::string> items_;
};

}  // namespace sluice::engine
