/// Members with scores, in the order of score, then bytes. A few are a sorted array, many a skip
/// list with a table.
///
/// Every range (by rank, by score, by bytes) is an interval of ranks: count_while() finds its ends.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/chained_table.hpp"
#include "engine/types/skip_list.hpp"
#include "engine/types/undo.hpp"

namespace sluice::engine {

struct Scored {
  std::string_view member;
  double score;
};

class SortedSet {
 public:
  SortedSet();
  SortedSet(const SortedSet& other);
  ~SortedSet();

  std::size_t size() const noexcept { return many_ ? many_->order.size() : few_.size(); }
  std::optional<double> score(std::string_view member) const noexcept;
  std::optional<std::size_t> rank(std::string_view member) const noexcept;
  /// Adds or moves. True: it was not there. REQUIRES: `score` is not NaN.
  bool set(std::string_view member, double score, Undo* undo);
  bool erase(std::string_view member, Undo* undo);
  /// Removes the ranks [first, last).
  void erase_range(std::size_t first, std::size_t last, Undo* undo);

  /// How many at the front satisfy `before(Scored)`. REQUIRES: none does after one that does not.
  /// O(log n).
  template <class Before>
  std::size_t count_while(Before&& before) const {
    if (many_)
      return many_->order.count_while([&](const Ranked& node) {
        return before(Scored{node.key(), node.score});
      });
    std::size_t low = 0;
    for (std::size_t high = few_.size(); low < high;) {
      const auto middle = low + (high - low) / 2;
      if (before(Scored{few_[middle].member, few_[middle].score}))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /// `visit(Scored)` for the ranks [first, last), from the last to the first where `reverse` is
  /// set.
  /// REQUIRES: last <= size().
  template <class Visit>
  void for_range(std::size_t first, std::size_t last, bool reverse, Visit&& visit) const {
    if (first >= last) return;
    if (!many_) {
      for (auto i = first; i < last; ++i) {
        const auto& item = few_[reverse ? last - 1 - (i - first) : i];
        visit(Scored{item.member, item.score});
      }
      return;
    }
    const Ranked* node = many_->order.at(reverse ? last - 1 : first);
    for (auto left = last - first; left > 0;
         --left, node = reverse ? node->before : node->links()[0].to)
      visit(Scored{node->key(), node->score});
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_range(0, size(), false, visit);
  }
  /// As ChainedTable::scan; a small one is visited whole at once.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit) const {
    if (many_)
      return many_->by_member.scan(cursor, [&](const Ranked& node) {
        visit(Scored{node.key(), node.score});
      });
    for_each(visit);
    return 0;
  }
  /// REQUIRES: rank < size().
  Scored at(std::size_t rank) const noexcept;
  /// REQUIRES: size() > 0.
  Scored random(SeededRandom& rng) const noexcept { return at(rng.below(size())); }

  std::string_view encoding() const noexcept { return many_ ? "skiplist" : "listpack"; }

 private:
  struct Item {
    double score;
    std::string member;
  };
  struct Many {
    ChainedTable<Ranked> by_member;
    SkipList order;
  };

  struct Inverse;

  void insert_few(std::string_view member, double score, Undo* undo);
  void insert_many(std::string_view member, double score, Undo* undo);
  void erase_few(std::size_t rank, Undo* undo);
  void erase_many(Ranked* node, Undo* undo);
  void move(Ranked* node, double score);
  void become_many(Undo* undo);

  std::vector<Item> few_;
  std::unique_ptr<Many> many_;
};

}  // namespace sluice::engine
