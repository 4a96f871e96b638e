#include "engine/types/set.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

// Redis's defaults set-max-intset-entries, set-max-listpack-entries and -value.
constexpr std::size_t few_numbers = 512;
constexpr std::size_t few_members = 128;
constexpr std::size_t short_text = 64;

}  // namespace

Set::Set(const Set& other) {
  other.for_each([this](std::string_view member) { add(member); });
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

bool Set::add(std::string_view member) {
  if (!table_ && few_.empty()) {
    const auto number = parse_integer(member);
    if (number && numbers_.size() < few_numbers) {
      const auto place = std::ranges::lower_bound(numbers_, *number);
      if (place != numbers_.end() && *place == *number) return false;
      numbers_.insert(place, *number);
      return true;
    }
    if (number && std::ranges::binary_search(numbers_, *number)) return false;
    leave_numbers(member);
  }
  if (!table_ && contains(member)) return false;
  if (!table_ && (few_.size() >= few_members || member.size() > short_text)) become_table();
  if (!table_) return few_.emplace_back(member), true;
  const auto hash = hash_of(member);
  if (table_->find(member, hash)) return false;
  table_->insert(new Node{.hash = hash, .value = std::string{member}});
  return true;
}

bool Set::erase(std::string_view member) {
  if (table_) return table_->erase(member);
  if (!numbers_.empty()) {
    const auto number = parse_integer(member);
    return number && std::erase(numbers_, *number) > 0;
  }
  return std::erase(few_, member) > 0;
}

std::string Set::random(SeededRandom& rng) const {
  if (table_) return table_->random(rng)->value;
  if (!numbers_.empty())
    return std::string{IntegerText{numbers_[rng.below(numbers_.size())]}.view()};
  return few_[rng.below(few_.size())];
}

void Set::leave_numbers(std::string_view coming) {
  const auto numbers = std::exchange(numbers_, {});
  if (numbers.size() >= few_members || coming.size() > short_text) become_table();
  for (const auto number : numbers) {
    const IntegerText text{number};
    if (table_)
      table_->insert(new Node{.hash = hash_of(text), .value = std::string{text.view()}});
    else
      few_.emplace_back(text.view());
  }
}

void Set::become_table() {
  table_ = std::make_unique<ChainedTable<Node>>();
  for (auto& member : few_) {
    const auto hash = hash_of(member);
    table_->insert(new Node{.hash = hash, .value = std::move(member)});
  }
  few_ = {};
}

}  // namespace sluice::engine
