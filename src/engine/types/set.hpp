/// Members without order: whole numbers as a sorted array, a few texts as a list, many as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/chained_table.hpp"
#include "engine/types/text.hpp"
#include "engine/types/undo.hpp"

namespace sluice::engine {

class Set {
 public:
  Set() = default;
  Set(const Set& other);
  ~Set();

  std::size_t size() const noexcept {
    return table_ ? table_->size() : numbers_.size() + few_.size();
  }
  bool contains(std::string_view member) const noexcept;
  /// True: it was not there.
  bool add(std::string_view member, Undo* undo);
  bool erase(std::string_view member, Undo* undo);

  template <class Visit>  // visit(std::string_view)
  void for_each(Visit&& visit) const {
    if (table_)
      return table_->for_each([&](const Node& node) { visit(std::string_view{node.value}); });
    for (const auto number : numbers_) visit(IntegerText{number}.view());
    for (const auto& member : few_) visit(std::string_view{member});
  }
  /// As ChainedTable::scan; a small one is visited whole at once.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit) const {
    if (table_)
      return table_->scan(cursor, [&](const Node& node) { visit(std::string_view{node.value}); });
    for_each(visit);
    return 0;
  }
  /// REQUIRES: size() > 0.
  std::string random(SeededRandom& rng) const;

  std::string_view encoding() const noexcept {
    return table_ ? "hashtable" : few_.empty() ? "intset" : "listpack";
  }

 private:
  using Node = TableNode<std::string>;

  struct Inverse;

  void leave_numbers(std::string_view coming, Undo* undo);
  void become_table(Undo* undo);
  void keep_shape(Undo* undo);

  // At most one of the three is in use.
  std::vector<std::int64_t> numbers_;  // sorted
  std::vector<std::string> few_;
  std::unique_ptr<ChainedTable<Node>> table_;
};

}  // namespace sluice::engine
