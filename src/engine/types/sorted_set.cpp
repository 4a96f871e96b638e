#include "engine/types/sorted_set.hpp"

#include <algorithm>
#include <bit>

#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

// Redis's default zset-max-listpack-entries.
constexpr std::size_t few_members = 128;

}  // namespace

SortedSet::SortedSet() = default;
SortedSet::SortedSet(const SortedSet& other) {
  other.for_each([this](const Scored& item) { set(item.member, item.score, nullptr); });
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

/// The steps that take changes of a sorted set back.
struct SortedSet::Inverse {
  static SortedSet& of(Undo::Step& step) { return *static_cast<SortedSet*>(step.target); }
  static std::ptrdiff_t place(const Undo::Step& step) {
    return static_cast<std::ptrdiff_t>(step.numbers[0]);
  }

  static void insert_few(Undo&, Undo::Step& step, Undo::Way) {
    auto& few = of(step).few_;
    few.erase(few.begin() + place(step));
  }
  static void erase_few(Undo& undo, Undo::Step& step, Undo::Way) {
    auto& few = of(step).few_;
    few.insert(few.begin() + place(step),
               Item{std::bit_cast<double>(step.numbers[1]), undo.take()});
  }
  static void insert_many(Undo&, Undo::Step& step, Undo::Way) {
    auto* node = static_cast<Ranked*>(step.other);
    of(step).many_->by_member.remove(node->key(), node->hash);
    of(step).many_->order.remove(node);
    Ranked::destroy(node);
  }
  static void erase_many(Undo&, Undo::Step& step, Undo::Way way) {
    auto* node = static_cast<Ranked*>(step.other);
    if (way == Undo::Way::forget) return Ranked::destroy(node);
    of(step).many_->by_member.insert(node);
    of(step).many_->order.insert(node);
  }
  static void move_many(Undo&, Undo::Step& step, Undo::Way) {
    of(step).move(static_cast<Ranked*>(step.other), std::bit_cast<double>(step.numbers[0]));
  }
  static void become_many(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<std::vector<Item>> few{static_cast<std::vector<Item>*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).many_.reset();
    of(step).few_ = std::move(*few);
  }
};

bool SortedSet::set(std::string_view member, double score, Undo* undo) {
  if (undo) undo->expect(2);
  if (many_) {
    Ranked* node = many_->by_member.find(member);
    if (!node) return insert_many(member, score, undo), true;
    if (node->score == score) return false;
    if (undo)
      undo->add(Inverse::move_many, this, node, {std::bit_cast<std::uint64_t>(node->score)});
    move(node, score);
    return false;
  }
  const auto item = std::ranges::find(few_, member, &Item::member);
  if (item != few_.end()) {
    if (item->score == score) return false;
    const std::string moved = item->member;
    erase_few(static_cast<std::size_t>(item - few_.begin()), undo);
    insert_few(moved, score, undo);
    return false;
  }
  if (few_.size() >= few_members || member.size() > longest_small_text) {
    become_many(undo);
    insert_many(member, score, undo);
  } else {
    insert_few(member, score, undo);
  }
  return true;
}

bool SortedSet::erase(std::string_view member, Undo* undo) {
  if (undo) undo->expect();
  if (!many_) {
    const auto item = std::ranges::find(few_, member, &Item::member);
    if (item == few_.end()) return false;
    erase_few(static_cast<std::size_t>(item - few_.begin()), undo);
    return true;
  }
  Ranked* node = many_->by_member.find(member);
  if (!node) return false;
  erase_many(node, undo);
  return true;
}

void SortedSet::erase_range(std::size_t first, std::size_t last, Undo* undo) {
  if (undo) undo->expect(last - first);
  if (!many_) {
    if (undo)
      for (auto left = last - first; left > 0; --left) erase_few(first, undo);
    else
      few_.erase(few_.begin() + static_cast<std::ptrdiff_t>(first),
                 few_.begin() + static_cast<std::ptrdiff_t>(last));
    return;
  }
  Ranked* node = first < last ? many_->order.at(first) : nullptr;
  for (auto left = last - first; left > 0; --left) {
    Ranked* after = node->links()[0].to;
    erase_many(node, undo);
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

void SortedSet::insert_few(std::string_view member, double score, Undo* undo) {
  if (score == 0) score = 0;  // Redis's listpack writes -0 as the integer 0
  const auto place = count_while(
      [&](const Scored& item) { return comes_before(item.score, item.member, score, member); });
  few_.insert(few_.begin() + static_cast<std::ptrdiff_t>(place), Item{score, std::string{member}});
  if (undo) undo->add(Inverse::insert_few, this, nullptr, {place});
}

void SortedSet::insert_many(std::string_view member, double score, Undo* undo) {
  Ranked* node = Ranked::make(member, hash_of(member), score, many_->order.draw_levels());
  many_->by_member.insert(node);
  many_->order.insert(node);
  if (undo) undo->add(Inverse::insert_many, this, node);
}

void SortedSet::erase_few(std::size_t rank, Undo* undo) {
  auto& item = few_[rank];
  if (undo) {
    undo->keep(std::move(item.member));
    undo->add(Inverse::erase_few, this, nullptr, {rank, std::bit_cast<std::uint64_t>(item.score)});
  }
  few_.erase(few_.begin() + static_cast<std::ptrdiff_t>(rank));
}

void SortedSet::erase_many(Ranked* node, Undo* undo) {
  many_->by_member.remove(node->key(), node->hash);
  many_->order.remove(node);
  if (undo)
    undo->add_keeping(Inverse::erase_many, this, node, sizeof(Ranked) + node->member_size);
  else
    Ranked::destroy(node);
}

void SortedSet::move(Ranked* node, double score) {
  many_->order.remove(node);
  node->score = score;
  many_->order.insert(node);
}

void SortedSet::become_many(Undo* undo) {
  if (undo)
    undo->add_keeping(Inverse::become_many, this, new std::vector<Item>(few_),
                      few_.size() * sizeof(Item));
  many_ = std::make_unique<Many>();
  for (const auto& item : few_) insert_many(item.member, item.score, nullptr);
  few_ = {};
}

}  // namespace sluice::engine
