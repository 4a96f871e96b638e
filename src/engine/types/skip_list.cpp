#include "engine/types/skip_list.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/types/chained_table.hpp"

namespace sluice::engine {

Ranked* Ranked::make(std::string_view member, std::uint64_t hash, double score,
                     std::uint32_t levels) {
  void* memory = ::operator new(sizeof(Ranked) + levels * sizeof(Link) + member.size());
  auto* node = new (memory)
      Ranked{.hash = hash, .score = score, .levels = levels, .member_size = member.size()};
  std::fill_n(node->links(), levels, Link{});
  std::memcpy(node->links() + levels, member.data(), member.size());
  return node;
}

void Ranked::destroy(Ranked* node) noexcept { ::operator delete(node); }

/// The seed is a secret of the process.
SkipList::SkipList() : random_(hash_of("levels")) {}

/// One more with a chance of 1/4.
std::uint32_t SkipList::draw_levels() noexcept {
  std::uint32_t levels = 1;
  while (levels < most_levels && random_.below(4) == 0) ++levels;
  return levels;
}

void SkipList::insert(Ranked* node) {
  // By level: the node whose link passes the new node's place, and its rank, from 1; 0: the head.
  std::array<Ranked::Link*, most_levels> from;
  std::array<std::size_t, most_levels> rank_from;
  std::size_t rank = 0;
  Ranked::Link* links = head_.data();
  Ranked* before = nullptr;
  for (auto level = std::max(levels_, node->levels); level-- > 0;) {
    while (links[level].to &&
           comes_before(links[level].to->score, links[level].to->key(), node->score, node->key())) {
      rank += links[level].width;
      before = links[level].to;
      links = before->links();
    }
    from[level] = links;
    rank_from[level] = rank;
  }
  for (std::uint32_t level = 0; level < std::max(levels_, node->levels); ++level) {
    auto& link = from[level][level];
    if (level >= node->levels) {
      if (link.to) ++link.width;
      continue;
    }
    const auto passed = rank - rank_from[level];  // ranks between the link's start and the new node
    node->links()[level] = {link.to, link.to ? link.width - passed : 0};
    link = {node, passed + 1};
  }
  levels_ = std::max(levels_, node->levels);
  node->before = before;
  (node->links()[0].to ? node->links()[0].to->before : last_) = node;
  ++size_;
}

void SkipList::remove(Ranked* node) {
  Ranked::Link* links = head_.data();
  for (auto level = levels_; level-- > 0;) {
    while (links[level].to && links[level].to != node &&
           comes_before(links[level].to->score, links[level].to->key(), node->score, node->key()))
      links = links[level].to->links();
    auto& link = links[level];
    if (link.to == node) {
      const auto& after = node->links()[level];
      link = {after.to, after.to ? link.width + after.width - 1 : 0};
    } else if (link.to) {
      --link.width;
    }
  }
  (node->links()[0].to ? node->links()[0].to->before : last_) = node->before;
  while (levels_ > 1 && !head_[levels_ - 1].to) --levels_;
  --size_;
}

Ranked* SkipList::at(std::size_t rank) const noexcept {
  std::size_t passed = 0;
  const Ranked::Link* links = head_.data();
  Ranked* node = nullptr;
  for (auto level = levels_; level-- > 0;)
    while (links[level].to && passed + links[level].width <= rank + 1) {
      passed += links[level].width;
      node = links[level].to;
      links = node->links();
    }
  return node;
}

std::size_t SkipList::rank_of(const Ranked* node) const noexcept {
  return count_while([&](const Ranked& other) {
    return comes_before(other.score, other.key(), node->score, node->key());
  });
}

}  // namespace sluice::engine
