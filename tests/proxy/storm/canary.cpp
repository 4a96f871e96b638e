#include "proxy/storm/canary.hpp"

#include <fmt/format.h>

#include "proxy/storm/round.hpp"

namespace sluice::test {

constexpr std::size_t depth = 2;

Canary::Canary(const Tongue& tongue, std::uint16_t port, std::size_t number)
    : tongue_(tongue), number_(number), random_(number), wire_(port) {
  while (asked_.size() < depth) ask();
}

void Canary::ask() {
  auto question = tongue_.question(number_, random_);
  wire_.queue(question.bytes);
  asked_.push_back({std::move(question), Clock::now()});
}

std::optional<std::string> Canary::look(std::chrono::milliseconds patience) {
  auto& input = wire_.input();
  while (!asked_.empty() && input.size() >= asked_.front().question.answer.size()) {
    const auto& [question, since] = asked_.front();
    if (!input.starts_with(question.answer))
      return fmt::format("canary {} asked {} and was told {}", number_, printable(question.bytes),
                         printable(input.substr(0, 300)));
    input.erase(0, question.answer.size());
    asked_.pop_front();
    ++replies_;
    ask();
  }
  const auto& [question, since] = asked_.front();
  if (!question.answer.starts_with(input))
    return fmt::format("canary {} asked {} and was told {}", number_, printable(question.bytes),
                       printable(input));
  if (wire_.ended()) return fmt::format("the connection of canary {} was closed", number_);
  if (Clock::now() - since > patience)
    return fmt::format("canary {} asked {} and waits for ever", number_, printable(question.bytes));
  return std::nullopt;
}

}  // namespace sluice::test
