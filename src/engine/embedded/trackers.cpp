#include "engine/embedded/trackers.hpp"

#include <cstddef>
#include <string_view>

#include "resp/command_table.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t most_waiting = 100'000;  // messages, some 10 MB

/// The keys that an effect names; none: it may have changed any.
std::vector<std::string_view> keys_of(const std::vector<std::string>& effect) {
  const std::vector<std::string_view> words{effect.begin(), effect.end()};
  const auto* const spec = resp::find_command(words);
  std::vector<std::size_t> positions;
  if (!spec || !resp::keys_of(*spec, words, positions)) return {};
  std::vector<std::string_view> keys;
  for (const auto at : positions) keys.push_back(words[at]);
  return keys;
}

}  // namespace

Listener Trackers::track(std::string prefix, MessageHandler handler) {
  Message first{.kind = Message::Kind::gap, .channel = prefix, .payload = {}};
  auto listener = prefixes_->listen(std::move(prefix), std::move(handler), std::move(first));
  prefixes_->deliver();
  return listener;
}

void Trackers::post(const std::vector<std::vector<std::string>>& effects) {
  if (effects.empty() || !any()) return;
  const auto prefixes = prefixes_->names();
  std::vector<Message> messages;
  for (const auto& effect : effects) {
    if (effect.front() == "SELECT" || resp::is_word(effect.front(), "function")) continue;
    const auto keys = keys_of(effect);
    for (const auto& prefix : prefixes) {
      if (keys.empty()) messages.push_back({Message::Kind::gap, prefix, {}});
      for (const auto key : keys)
        if (key.starts_with(prefix))
          messages.push_back({Message::Kind::published, prefix, std::string{key}});
    }
  }
  prefixes_->post(std::move(messages), most_waiting);
}

}  // namespace sluice::engine
