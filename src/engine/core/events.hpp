/// Notifications of keys, as `notify-keyspace-events` asks for them: a message for each change, on
/// channels that name the key or the event.
///
/// The events are read off the command that ran and the keys that it names, before and after it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/context.hpp"

namespace sluice::engine {

/// Kinds of events; a letter of the setting each.
enum EventKind : std::uint32_t {
  event_generic = 1U << 0,
  event_string = 1U << 1,
  event_list = 1U << 2,
  event_set = 1U << 3,
  event_hash = 1U << 4,
  event_sorted_set = 1U << 5,
  event_expired = 1U << 6,
  event_evicted = 1U << 7,
  event_stream = 1U << 8,
  event_module = 1U << 9,
  event_missed = 1U << 10,
  event_new = 1U << 11,
  event_by_key = 1U << 12,   ///< K
  event_by_name = 1U << 13,  ///< E
};

/// Of the letters of the setting; empty: one of them is not known.
std::optional<std::uint32_t> read_event_kinds(std::string_view letters);
/// In Redis's order.
std::string event_letters(std::uint32_t kinds);

/// What a command does to its keys is told from before it to after it.
class EventWatch {
 public:
  /// Before the command.
  EventWatch(Context& context, const resp::CommandSpec& spec, Words words);
  /// After it, if it has changed something.
  void tell(const resp::CommandSpec& spec, Words words);

 private:
  struct Key {
    std::string_view name;
    bool was_there;
  };
  bool is_there(std::string_view key) const;

  Context& context_;
  const int database_;
  std::vector<Key> keys_;
};

/// Says it where the setting wants it.
void tell_event(Context& context, int database, EventKind kind, std::string_view event,
                std::string_view key);

}  // namespace sluice::engine
