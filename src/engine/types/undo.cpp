#include "engine/types/undo.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

constexpr std::size_t few_steps = 1024;  // room for so many is kept until the next script

template <class T>
void reserve(std::vector<T>& items, std::size_t more) {
  if (items.capacity() - items.size() < more)
    items.reserve(std::max({items.capacity() * 2, items.size() + more, std::size_t{16}}));
}

void take_text_back(Undo& undo, Undo::Step& step, Undo::Way) {
  auto& text = *static_cast<std::string*>(step.target);
  const auto [begin, size, unused, none] = step.numbers;
  const auto old = undo.take();
  text.resize(size);
  text.replace(begin, old.size(), old);
}

}  // namespace

void Undo::make_room(std::size_t steps) {
  reserve(steps_, steps);
  reserve(texts_, 2 * steps);
}

void Undo::take_back() noexcept {
  while (!steps_.empty()) {
    Step step = steps_.back();
    steps_.pop_back();
    step.play(*this, step, Way::back);
  }
  clear();
}

void Undo::forget_steps() noexcept {
  if (keeping_ > 0)
    for (auto& step : steps_)
      if (step.keeps) step.play(*this, step, Way::forget);
  clear();
}

void Undo::clear() noexcept {
  steps_.clear();
  texts_.clear();
  if (steps_.capacity() > few_steps) {
    steps_ = {};
    texts_ = {};
  }
  keeping_ = kept_ = written_ = 0;
}

void expect_change(Undo* undo, std::string& text, std::size_t begin, std::size_t size) {
  if (!undo) return;
  undo->expect();
  const auto old = text.size();
  undo->wrote(begin + size > old ? begin + size - old : 0);
  undo->keep(begin < old ? text.substr(begin, size) : std::string{});
  undo->add(take_text_back, &text, nullptr, {std::min(begin, old), old});
}

}  // namespace sluice::engine
