/// Fields with values. A small one is a list in the order of insertion, a large one a table.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/chained_table.hpp"
#include "engine/types/undo.hpp"

namespace sluice::engine {

class Hash {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  Hash() = default;
  Hash(const Hash& other);
  ~Hash();

  std::size_t size() const noexcept { return table_ ? table_->size() : few_.size(); }
  /// Null: no such field. Good until the next change.
  const std::string* find(std::string_view name) const noexcept;
  /// So many fields are going to be set.
  void expect(std::size_t fields);
  /// True: the field is new.
  bool set(std::string_view name, std::string_view value, Undo* undo);
  bool erase(std::string_view name, Undo* undo);

  template <class Visit>  // visit(const Field&)
  void for_each(Visit&& visit) const {
    if (table_) return table_->for_each([&](const Node& node) { visit(node.value); });
    for (const auto& field : few_) visit(field);
  }
  /// As ChainedTable::scan; a small one is visited whole at once.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit) const {
    if (table_) return table_->scan(cursor, [&](const Node& node) { visit(node.value); });
    for_each(visit);
    return 0;
  }
  /// REQUIRES: size() > 0.
  const Field& random(SeededRandom& rng) const {
    return table_ ? table_->random(rng)->value : few_[rng.below(few_.size())];
  }

  std::string_view encoding() const noexcept { return table_ ? "hashtable" : "listpack"; }

 private:
  using Node = TableNode<Field>;
  friend std::string_view key_of(const Field& field) noexcept { return field.name; }

  struct Inverse;

  void become_table(Undo* undo);

  std::vector<Field> few_;
  std::unique_ptr<ChainedTable<Node>> table_;
};

}  // namespace sluice::engine
