#include "engine/types/sorted_set.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

// Redis's defaults zset-max-listpack-entries and -value.
constexpr std::size_t few_members = 128;
constexpr std::size_t short_text = 64;

}  // namespace

SortedSet::SortedSet() = default;
SortedSet::SortedSet(const SortedSet& other) {
  other.for_each([this](const Scored& item) { set(item.member, item.score); });
}
SortedSet::~SortedSet() = default;

std::optional<double> SortedSet::score(std::string_view member) const noexcept {
  if (many_) {
    const Ranked* node = many_->by_member.find(member);
    return node ? std::optional{node->score} : std::nullopt;
  }
  const auto item = std::ranges::find(few_, member, &Item::member);
  return item == few_.end() ? std::nullopt : std::optional{item->score};
}

std::optional<std::size_t> SortedSet::rank(std::string_view member) const noexcept {
  if (many_) {
    const Ranked* node = many_->by_member.find(member);
    return node ? std::optional{many_->order.rank_of(node)} : std::nullopt;
  }
  const auto item = std::ranges::find(few_, member, &Item::member);
  return item == few_.end() ? std::nullopt
                            : std::optional{static_cast<std::size_t>(item - few_.begin())};
}

bool SortedSet::set(std::string_view member, double score) {
  if (many_) {
    Ranked* node = many_->by_member.find(member);
    if (!node) return insert_many(member, score), true;
    if (node->score == score) return false;
    many_->order.remove(node);
    node->score = score;
    many_->order.insert(node);
    return false;
  }
  const auto item = std::ranges::find(few_, member, &Item::member);
  if (item != few_.end()) {
    if (item->score == score) return false;
    const std::string moved = std::move(item->member);
    few_.erase(item);
    insert_few(moved, score);
    return false;
  }
  if (few_.size() >= few_members || member.size() > short_text) {
    become_many();
    insert_many(member, score);
  } else {
    insert_few(member, score);
  }
  return true;
}

bool SortedSet::erase(std::string_view member) {
  if (!many_)
    return std::erase_if(few_, [&](const Item& item) { return item.member == member; }) > 0;
  Ranked* node = many_->by_member.remove(member, hash_of(member));
  if (!node) return false;
  many_->order.remove(node);
  Ranked::destroy(node);
  return true;
}

void SortedSet::erase_range(std::size_t first, std::size_t last) {
  if (!many_) {
    few_.erase(few_.begin() + static_cast<std::ptrdiff_t>(first),
               few_.begin() + static_cast<std::ptrdiff_t>(last));
    return;
  }
  Ranked* node = first < last ? many_->order.at(first) : nullptr;
  for (auto left = last - first; left > 0; --left) {
    Ranked* after = node->links()[0].to;
    many_->by_member.remove(node->key(), node->hash);
    many_->order.remove(node);
    Ranked::destroy(node);
    node = after;
  }
}

Scored SortedSet::at(std::size_t rank) const noexcept {
  if (many_) {
    const Ranked* node = many_->order.at(rank);
    return {node->key(), node->score};
  }
  return {few_[rank].member, few_[rank].score};
}

void SortedSet::insert_few(std::string_view member, double score) {
  if (score == 0) score = 0;  // Redis's listpack writes -0 as the integer 0
  const auto place = count_while(
      [&](const Scored& item) { return comes_before(item.score, item.member, score, member); });
  few_.insert(few_.begin() + static_cast<std::ptrdiff_t>(place), Item{score, std::string{member}});
}

void SortedSet::insert_many(std::string_view member, double score) {
  Ranked* node = Ranked::make(member, hash_of(member), score, many_->order.draw_levels());
  many_->by_member.insert(node);
  many_->order.insert(node);
}

void SortedSet::become_many() {
  many_ = std::make_unique<Many>();
  for (const auto& item : few_) insert_many(item.member, item.score);
  few_ = {};
}

}  // namespace sluice::engine
