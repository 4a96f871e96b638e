#include "server/waiting_lines.hpp"

#include <utility>

namespace sluice::server {

bool WaitingLines::Place::has_turn() const {
  const std::lock_guard lock{lines_.mutex_};
  return line_->second.waiting.front() == turn_;
}

std::unique_ptr<WaitingLines::Place> WaitingLines::enter(const std::string& name) {
  const auto turn = std::make_shared<Completion>();
  const std::lock_guard lock{mutex_};
  const auto known = lines_.find(name);
  const auto before = known == lines_.end() ? 0 : known->second.waiting.size();
  if (all_ >= limits_.all || before >= limits_.of_a_name) return nullptr;
  const auto line = lines_.try_emplace(name).first;
  if (!line->second.released)
    line->second.released = std::make_shared<lock::MessageSignal>(std::vector<Store*>{&store_});
  line->second.waiting.push_back(turn);
  ++all_;
  if (before == 0) turn->complete();
  return std::make_unique<Place>(*this, line, turn);
}

std::size_t WaitingLines::waiting(const std::string& name) const {
  const std::lock_guard lock{mutex_};
  const auto line = lines_.find(name);
  return line == lines_.end() ? 0 : line->second.waiting.size();
}

void WaitingLines::leave(const Place& place) {
  std::shared_ptr<Completion> next;
  std::shared_ptr<lock::MessageSignal> unheard;  // ends without the mutex: it unsubscribes
  {
    const std::lock_guard lock{mutex_};
    auto& [waiting, released] = place.line_->second;
    const bool had_turn = waiting.front() == place.turn_;
    std::erase(waiting, place.turn_);
    --all_;
    if (waiting.empty()) {
      unheard = std::move(released);
      lines_.erase(place.line_);
    } else if (had_turn) {
      next = waiting.front();
    }
  }
  // He goes on right here, and may leave in his turn: one after another, not one inside another.
  if (next) lock::Trampoline::complete(std::move(next));
}

}  // namespace sluice::server
