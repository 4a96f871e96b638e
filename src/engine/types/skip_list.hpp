/// Members in the order of (score, bytes), with their ranks: a skip list whose links know how many
/// they pass.
///
/// W. Pugh, "Skip lists: a probabilistic alternative to balanced trees", 1990, with the widths of
/// his "cookbook". Levels are drawn, not made from members: a caller who chooses the members does
/// not choose how high they stand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/types/random.hpp"

namespace sluice::engine {

/// A member; also a node of the ChainedTable that finds it by its text. Links and text follow the
/// struct in memory.
struct Ranked {
  struct Link {
    Ranked* to;
    std::size_t width;  ///< how many ranks further
  };

  Ranked* next = nullptr;  ///< of the ChainedTable
  std::uint64_t hash;
  double score;
  Ranked* before = nullptr;
  std::uint32_t levels;
  std::size_t member_size;

  Link* links() noexcept { return reinterpret_cast<Link*>(this + 1); }
  const Link* links() const noexcept { return reinterpret_cast<const Link*>(this + 1); }
  std::string_view key() const noexcept {
    return {reinterpret_cast<const char*>(links() + levels), member_size};
  }

  static Ranked* make(std::string_view member, std::uint64_t hash, double score,
                      std::uint32_t levels);
  static void destroy(Ranked* node) noexcept;
};

/// By score, then by bytes.
inline bool comes_before(double score, std::string_view member, double other_score,
                         std::string_view other) noexcept {
  return score < other_score || (score == other_score && member < other);
}

/// Does not own its nodes.
class SkipList {
 public:
  static constexpr std::size_t most_levels = 32;

  SkipList();

  /// For a new node.
  std::uint32_t draw_levels() noexcept;

  std::size_t size() const noexcept { return size_; }
  Ranked* last() const noexcept { return last_; }

  void insert(Ranked* node);
  void remove(Ranked* node);
  /// REQUIRES: rank < size().
  Ranked* at(std::size_t rank) const noexcept;
  std::size_t rank_of(const Ranked* node) const noexcept;

  /// How many at the front satisfy `before(const Ranked&)`. REQUIRES: none does after one that does
  /// not.
  template <class Before>
  std::size_t count_while(Before&& before) const {
    std::size_t rank = 0;
    const Ranked::Link* links = head_.data();
    for (auto level = levels_; level-- > 0;)
      while (links[level].to && before(static_cast<const Ranked&>(*links[level].to))) {
        rank += links[level].width;
        links = links[level].to->links();
      }
    return rank;
  }

 private:
  SeededRandom random_;
  std::array<Ranked::Link, most_levels> head_{};
  std::uint32_t levels_ = 1;
  std::size_t size_ = 0;
  Ranked* last_ = nullptr;
};

}  // namespace sluice::engine
