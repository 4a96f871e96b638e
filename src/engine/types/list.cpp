#include "engine/types/list.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::engine {

namespace {

/// std::remove_if, which asks once for each in order, as the callers' predicates count.
template <class Iterator, class Predicate>
Iterator remove_if_in_order(Iterator begin, Iterator end, const Predicate& predicate) {
  auto kept = begin;
  for (auto at = begin; at != end; ++at) {
    if (predicate(*at)) continue;
    if (kept != at) *kept = std::move(*at);
    ++kept;
  }
  return kept;
}

}  // namespace

/// The steps that take changes of a list back.
struct List::Inverse {
  using Items = std::deque<std::string>;

  static List& of(Undo::Step& step) { return *static_cast<List*>(step.target); }
  static std::ptrdiff_t place(const Undo::Step& step) {
    return static_cast<std::ptrdiff_t>(step.numbers[0]);
  }

  template <End end>
  static void push(Undo&, Undo::Step& step, Undo::Way) {
    auto& items = of(step).items_;
    end == End::left ? items.pop_front() : items.pop_back();
  }
  template <End end>
  static void pop(Undo& undo, Undo::Step& step, Undo::Way) {
    auto& items = of(step).items_;
    end == End::left ? items.push_front(undo.take()) : items.push_back(undo.take());
  }
  static void set(Undo& undo, Undo::Step& step, Undo::Way) {
    of(step).items_[step.numbers[0]] = undo.take();
  }
  static void insert(Undo&, Undo::Step& step, Undo::Way) {
    auto& items = of(step).items_;
    items.erase(items.begin() + place(step));
  }
  /// The items were all alike; `other`: their places before, ascending.
  static void remove(Undo& undo, Undo::Step& step, Undo::Way way) {
    using Places = std::vector<std::size_t>;
    const std::unique_ptr<Places> places{static_cast<Places*>(step.other)};
    if (way == Undo::Way::forget) return;
    auto& items = of(step).items_;
    const auto item = undo.take();
    auto from = items.size();
    items.resize(from + places->size());
    auto next = places->rbegin();
    for (auto to = items.size(); next != places->rend();) {
      --to;
      if (*next == to) {
        items[to] = item;
        ++next;
      } else {
        items[to] = std::move(items[--from]);
      }
    }
  }
  /// `other`: the items that were cut off, `numbers[0]` of them in front.
  static void trim(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Items> cut{static_cast<Items*>(step.other)};
    if (way == Undo::Way::forget) return;
    auto& items = of(step).items_;
    for (auto front = step.numbers[0]; front > 0; --front)
      items.push_front(std::move((*cut)[front - 1]));
    for (auto i = step.numbers[0]; i < cut->size(); ++i) items.push_back(std::move((*cut)[i]));
  }
};

void List::push(End end, std::string_view item, Undo* undo) {
  if (undo) undo->expect();
  if (end == End::left)
    items_.emplace_front(item);
  else
    items_.emplace_back(item);
  if (undo)
    undo->add(end == End::left ? Inverse::push<End::left> : Inverse::push<End::right>, this);
}

std::string List::pop(End end, Undo* undo) {
  auto& popped = end == End::left ? items_.front() : items_.back();
  if (undo) {
    undo->expect();
    undo->keep(std::string{popped});
    undo->add(end == End::left ? Inverse::pop<End::left> : Inverse::pop<End::right>, this);
  }
  std::string item = std::move(popped);
  if (end == End::left)
    items_.pop_front();
  else
    items_.pop_back();
  return item;
}

void List::set(std::size_t i, std::string_view item, Undo* undo) {
  if (!undo) return static_cast<void>(items_[i].assign(item));
  undo->expect();
  undo->keep(std::exchange(items_[i], std::string{item}));
  undo->add(Inverse::set, this, nullptr, {i});
}

std::optional<std::size_t> List::index_of(std::int64_t place) const noexcept {
  const auto count = static_cast<std::int64_t>(items_.size());
  if (place < 0) place += count;
  if (place < 0 || place >= count) return std::nullopt;
  return static_cast<std::size_t>(place);
}

void List::insert(std::size_t before, std::string_view item, Undo* undo) {
  if (undo) undo->expect();
  items_.emplace(items_.begin() + static_cast<std::ptrdiff_t>(before), item);
  if (undo) undo->add(Inverse::insert, this, nullptr, {before});
}

std::size_t List::remove(std::string_view item, std::int64_t count, Undo* undo) {
  // -INT64_MIN does not exist, and no list is that long.
  auto left = count == 0 ? items_.size()
                         : static_cast<std::size_t>(count < 0 ? -(count + 1) : count - 1) + 1;
  auto places = undo ? std::make_unique<std::vector<std::size_t>>() : nullptr;
  std::string text{undo ? item : std::string_view{}};
  const auto before = items_.size();
  std::size_t seen = 0;
  const auto wanted = [&](const std::string& other) {
    const auto place = count < 0 ? before - 1 - seen : seen;
    ++seen;
    if (left == 0 || other != item) return false;
    --left;
    if (places) places->push_back(place);
    return true;
  };
  if (undo) undo->expect();
  if (count < 0) {
    const auto kept = remove_if_in_order(items_.rbegin(), items_.rend(), wanted);
    items_.erase(items_.begin(), kept.base());
  } else {
    items_.erase(remove_if_in_order(items_.begin(), items_.end(), wanted), items_.end());
  }
  if (places && !places->empty()) {
    if (count < 0) std::ranges::reverse(*places);
    undo->keep(std::move(text));
    const auto bytes = places->size() * sizeof(std::size_t);
    undo->add_keeping(Inverse::remove, this, places.release(), bytes);
  }
  return before - items_.size();
}

void List::trim(std::size_t first, std::size_t last, Undo* undo) {
  const auto from = items_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = items_.begin() + static_cast<std::ptrdiff_t>(last);
  if (undo && (first > 0 || last < items_.size())) {
    undo->expect();
    auto cut = std::make_unique<Inverse::Items>();
    std::move(items_.begin(), from, std::back_inserter(*cut));
    std::move(to, items_.end(), std::back_inserter(*cut));
    std::size_t bytes = cut->size() * sizeof(std::string);
    for (const auto& item : *cut) bytes += item.size();
    undo->add_keeping(Inverse::trim, this, cut.release(), bytes, {first});
  }
  items_.erase(to, items_.end());
  items_.erase(items_.begin(), from);
}

}  // namespace sluice::engine
