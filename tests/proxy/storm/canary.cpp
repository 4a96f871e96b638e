#include "proxy/storm/canary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "proxy/storm/round.hpp"

namespace sluice::test {

Canary::Canary(const Tongue& tongue, std::uint16_t port, std::size_t number, CanaryOptions options)
    : tongue_(tongue), port_(port), number_(number), options_(options), random_(number) {
  connect();
  ask_on();
}

/// None listens while a proxy is replaced by another: then later.
void Canary::connect() try {
  asked_.clear();
  wire_.reset();
  wire_.emplace(port_);
} catch (const std::system_error&) {
  if (!options_.forgives) throw;
}

void Canary::ask() {
  auto question = tongue_.question(number_, random_);
  wire_->queue(question.bytes);
  asked_.push_back({std::move(question), Clock::now()});
}

void Canary::ask_on() {
  constexpr std::size_t depth = 2;
  if (!wire_) return;
  if (options_.pace.count() == 0)
    while (asked_.size() < depth) ask();
  else if (asked_.empty() && Clock::now() >= answered_ + options_.pace)
    ask();
}

std::string Canary::told(const Question& question, std::string_view what) const {
  return fmt::format("canary {} asked {} and {}", number_, printable(question.bytes), what);
}

/// Of the right answer, when it is that; else of whatever came. 0: it is not whole.
std::size_t Canary::size_of_reply() const {
  const auto& answer = asked_.front().question.answer;
  auto& input = const_cast<Wire&>(*wire_).input();
  if (input.starts_with(answer)) return answer.size();
  const auto reader = tongue_.reply_reader();
  return reader->read(input) == proxy::ReplyReader::State::complete ? reader->size() : 0;
}

bool Canary::is_forgiven(const Question& question, std::string_view reply) const {
  if (!options_.forgives) return false;
  const bool is_error = reply.starts_with('-') || reply.starts_with("SERVER_ERROR");
  return is_error || std::ranges::find(question.misses, reply) != question.misses.end();
}

std::optional<std::string> Canary::look() {
  while (wire_ && !asked_.empty()) {
    auto& input = wire_->input();
    const auto& [question, since] = asked_.front();
    const auto size = size_of_reply();
    if (size == 0) {
      const bool may_become_right = options_.forgives || question.answer.starts_with(input);
      if (!may_become_right) return told(question, "was told " + printable(input.substr(0, 300)));
      break;
    }
    const auto reply = std::string_view{input}.substr(0, size);
    if (reply != question.answer && !is_forgiven(question, reply))
      return told(question, "was told " + printable(input.substr(0, 300)));
    reply == question.answer ? ++replies_ : ++losses_;
    answered_ = Clock::now();
    latencies_.observe(answered_ - since);
    input.erase(0, size);
    asked_.pop_front();
  }
  if (!wire_ || wire_->ended()) {
    if (!options_.forgives) return fmt::format("the connection of canary {} was closed", number_);
    ++losses_;
    connect();
  }
  ask_on();
  const auto since = asked_.empty() ? Clock::now() : asked_.front().since;
  if (Clock::now() - since > options_.patience)
    return told(asked_.front().question, "waits for ever");
  if (Clock::now() - answered_ > 3 * options_.patience)
    return fmt::format("canary {} cannot connect", number_);
  return std::nullopt;
}

}  // namespace sluice::test
