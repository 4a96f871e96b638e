#include "engine/types/set.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

// Redis's defaults set-max-intset-entries, and set-max-listpack-entries.
constexpr std::size_t few_numbers = 512;
constexpr std::size_t few_members = 128;

}  // namespace

Set::Set(const Set& other) {
  other.for_each([this](std::string_view member) { add(member, nullptr); });
}

Set::~Set() = default;

bool Set::contains(std::string_view member) const noexcept {
  if (table_) return table_->find(member) != nullptr;
  if (!numbers_.empty()) {
    const auto number = parse_integer(member);
    return number && std::ranges::binary_search(numbers_, *number);
  }
  return std::ranges::find(few_, member) != few_.end();
}

/// The steps that take changes of a set back.
struct Set::Inverse {
  /// A small set as it was before it took another form.
  struct Shape {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> few;
  };

  static Set& of(Undo::Step& step) { return *static_cast<Set*>(step.target); }
  static std::ptrdiff_t place(const Undo::Step& step) {
    return static_cast<std::ptrdiff_t>(step.numbers[0]);
  }

  static void add_number(Undo&, Undo::Step& step, Undo::Way) {
    auto& numbers = of(step).numbers_;
    numbers.erase(numbers.begin() + place(step));
  }
  static void erase_number(Undo&, Undo::Step& step, Undo::Way) {
    auto& numbers = of(step).numbers_;
    numbers.insert(numbers.begin() + place(step), static_cast<std::int64_t>(step.numbers[1]));
  }
  static void add_few(Undo&, Undo::Step& step, Undo::Way) { of(step).few_.pop_back(); }
  static void erase_few(Undo& undo, Undo::Step& step, Undo::Way) {
    auto& few = of(step).few_;
    few.insert(few.begin() + place(step), undo.take());
  }
  static void add_many(Undo&, Undo::Step& step, Undo::Way) {
    const auto* node = static_cast<Node*>(step.other);
    Node::destroy(of(step).table_->remove(node->key(), node->hash));
  }
  static void erase_many(Undo&, Undo::Step& step, Undo::Way way) {
    auto* node = static_cast<Node*>(step.other);
    way == Undo::Way::back ? of(step).table_->insert(node) : Node::destroy(node);
  }
  static void shape(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Shape> shape{static_cast<Shape*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).table_.reset();
    of(step).numbers_ = std::move(shape->numbers);
    of(step).few_ = std::move(shape->few);
  }
};

bool Set::add(std::string_view member, Undo* undo) {
  if (undo) undo->expect(3);
  if (!table_ && few_.empty()) {
    const auto number = parse_integer(member);
    if (number && numbers_.size() < few_numbers) {
      const auto place = std::ranges::lower_bound(numbers_, *number);
      if (place != numbers_.end() && *place == *number) return false;
      const auto index = place - numbers_.begin();
      numbers_.insert(place, *number);
      if (undo) undo->add(Inverse::add_number, this, nullptr, {static_cast<std::uint64_t>(index)});
      return true;
    }
    if (number && std::ranges::binary_search(numbers_, *number)) return false;
    leave_numbers(member, undo);
  }
  if (!table_ && contains(member)) return false;
  if (!table_ && (few_.size() >= few_members || member.size() > longest_small_text))
    become_table(undo);
  if (!table_) {
    few_.emplace_back(member);
    if (undo) undo->add(Inverse::add_few, this);
    return true;
  }
  const auto hash = hash_of(member);
  if (table_->find(member, hash)) return false;
  auto* node = new Node{.hash = hash, .value = std::string{member}};
  table_->insert(node);
  if (undo) undo->add(Inverse::add_many, this, node);
  return true;
}

bool Set::erase(std::string_view member, Undo* undo) {
  if (undo) undo->expect();
  if (table_) {
    Node* node = table_->remove(member, hash_of(member));
    if (!node) return false;
    if (undo)
      undo->add_keeping(Inverse::erase_many, this, node, sizeof(Node) + node->value.size());
    else
      Node::destroy(node);
    return true;
  }
  if (!numbers_.empty()) {
    const auto number = parse_integer(member);
    const auto place = number ? std::ranges::lower_bound(numbers_, *number) : numbers_.end();
    if (place == numbers_.end() || *place != *number) return false;
    if (undo)
      undo->add(Inverse::erase_number, this, nullptr,
                {static_cast<std::uint64_t>(place - numbers_.begin()),
                 static_cast<std::uint64_t>(*number)});
    numbers_.erase(place);
    return true;
  }
  const auto place = std::ranges::find(few_, member);
  if (place == few_.end()) return false;
  if (undo) {
    undo->keep(std::move(*place));
    undo->add(Inverse::erase_few, this, nullptr,
              {static_cast<std::uint64_t>(place - few_.begin())});
  }
  few_.erase(place);
  return true;
}

std::string Set::random(SeededRandom& rng) const {
  if (table_) return table_->random(rng)->value;
  if (!numbers_.empty())
    return std::string{IntegerText{numbers_[rng.below(numbers_.size())]}.view()};
  return few_[rng.below(few_.size())];
}

void Set::keep_shape(Undo* undo) {
  if (undo)
    undo->add_keeping(Inverse::shape, this, new Inverse::Shape{numbers_, few_},
                      numbers_.size() * sizeof(std::int64_t) + few_.size() * sizeof(std::string));
}

void Set::leave_numbers(std::string_view coming, Undo* undo) {
  if (!numbers_.empty()) keep_shape(undo);
  const auto numbers = std::exchange(numbers_, {});
  if (numbers.size() >= few_members || coming.size() > longest_small_text) become_table(undo);
  for (const auto number : numbers) {
    const IntegerText text{number};
    if (table_)
      table_->insert(new Node{.hash = hash_of(text), .value = std::string{text.view()}});
    else
      few_.emplace_back(text.view());
  }
}

void Set::become_table(Undo* undo) {
  keep_shape(undo);
  table_ = std::make_unique<ChainedTable<Node>>();
  for (auto& member : few_) {
    const auto hash = hash_of(member);
    table_->insert(new Node{.hash = hash, .value = std::move(member)});
  }
  few_ = {};
}

}  // namespace sluice::engine
