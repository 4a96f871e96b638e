#include "redis/trackers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::redis {

void Trackers::add(std::shared_ptr<Tracker> tracker) {
  {
    const std::lock_guard lock{mutex_};
    all_.push_back(tracker);
    any_.store(true, std::memory_order_relaxed);
  }
  try {
    ask_if(true);
  } catch (...) {
    forget(*tracker);
    throw;
  }
}

void Trackers::remove(const Tracker& tracker) noexcept try {
  ask_if(forget(tracker));
} catch (const std::exception&) {  // no memory: the server tells it in vain until the next question
}

/// Whether it was the last.
bool Trackers::forget(const Tracker& tracker) noexcept {
  const std::lock_guard lock{mutex_};
  std::erase_if(all_, [&](const auto& one) { return one.get() == &tracker; });
  any_.store(!all_.empty(), std::memory_order_relaxed);
  return all_.empty();
}

void Trackers::connected() { ask_if(any()); }

void Trackers::ask_if(bool stale) {
  if (!stale) return;
  {
    const std::lock_guard lock{mutex_};
    stale_ = true;
    if (std::exchange(asking_, true)) return;
  }
  try {
    on_stale();
  } catch (...) {
    const std::lock_guard lock{mutex_};
    asking_ = false;
    throw;
  }
}

/// The shortest prefixes that cover all.
std::vector<std::string> Trackers::wanted() const {
  std::vector<std::string> prefixes;
  for (const auto& tracker : all_) prefixes.push_back(tracker->prefix);
  std::ranges::sort(prefixes);
  std::vector<std::string> shortest;
  for (auto& prefix : prefixes)
    if (shortest.empty() || !prefix.starts_with(shortest.back()))
      shortest.push_back(std::move(prefix));
  return shortest;
}

bool Trackers::is_told_of(std::string_view prefix) const noexcept {
  return std::ranges::any_of(told_, [&](const auto& told) { return prefix.starts_with(told); });
}

std::optional<Trackers::Question> Trackers::next() {
  const std::lock_guard lock{mutex_};
  auto prefixes = wanted();
  asking_ = std::exchange(stale_, false) && !(prefixes.empty() && told_.empty());
  if (!asking_) return std::nullopt;
  if (!prefixes.empty() &&
      std::ranges::all_of(prefixes, [this](const auto& one) { return is_told_of(one); }))
    return Question{{{"PING"}}, told_, connection_};
  Question question{{{"CLIENT", "TRACKING", "OFF"}}, {}, connection_};
  if (prefixes.empty()) return question;
  std::vector<std::string> on{"CLIENT", "TRACKING", "ON", "BCAST"};
  for (const auto& prefix : prefixes) {
    on.emplace_back("PREFIX");
    on.push_back(prefix);
  }
  question.commands.push_back(std::move(on));
  question.prefixes = std::move(prefixes);
  return question;
}

void Trackers::take(const Question& question, const std::string& refusal) {
  List changed;
  {
    const std::lock_guard lock{mutex_};
    if (question.connection != connection_) return;
    const bool is_new = question.is_anew() || !refusal.empty();
    told_ = refusal.empty() ? question.prefixes : std::vector<std::string>{};
    for (const auto& tracker : all_) {
      if (tracker->is_told && !is_new) continue;
      tracker->is_told = is_told_of(tracker->prefix);
      if (tracker->is_told || !refusal.empty()) changed.push_back(tracker);
    }
  }
  tell(changed, refusal.empty() ? Message::Kind::gap : Message::Kind::lost, refusal);
}

void Trackers::give_up() {
  const std::lock_guard lock{mutex_};
  asking_ = false;
}

Trackers::List Trackers::told() const {
  List told;
  std::ranges::copy_if(all_, std::back_inserter(told), &Tracker::is_told);
  return told;
}

void Trackers::lost(const std::string& why) {
  List trackers;
  {
    const std::lock_guard lock{mutex_};
    ++connection_;
    told_.clear();
    trackers = told();
    for (const auto& tracker : trackers) tracker->is_told = false;
  }
  tell(trackers, Message::Kind::lost, why);
}

void Trackers::tell(const List& trackers, Message::Kind kind, const std::string& why) {
  for (const auto& tracker : trackers)
    tracker->handler.call({.kind = kind, .channel = tracker->prefix, .payload = why});
}

void Trackers::deliver(const Value::Items& push) {
  List trackers;
  {
    const std::lock_guard lock{mutex_};
    trackers = told();
  }
  const bool has_names = push.size() == 2 && push[1].type() == Value::Type::array &&
                         std::ranges::all_of(push[1].as_items(), &Value::is_text);
  if (!has_names) return tell(trackers, Message::Kind::gap);
  for (const auto& tracker : trackers) {
    Message message{.channel = tracker->prefix, .payload = {}};
    for (const auto& key : push[1].as_items()) {
      if (!key.as_text().starts_with(tracker->prefix)) continue;
      message.payload = key.as_text();
      tracker->handler.call(message);
    }
  }
}

}  // namespace sluice::redis
