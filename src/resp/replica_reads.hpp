/// What a replica may be asked in the place of its master, and which of its replies are of use.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "resp/command_table.hpp"
#include "sluice/value.hpp"

namespace sluice::resp {

/// Of a single command of so many keys, which does not block: a replica's reply to it is as good as
/// the master's, but for its age. Cursors are of one server (SCAN), and what a command does to the
/// age of a key (TOUCH) is the master's. `is_sharded`: a replica does not know that a slot is being
/// moved away, and keys that have gone are absent there: commands of one key alone, of whose
/// replies proves_presence() is asked.
bool may_read_from_replica(const CommandSpec& spec, std::size_t keys, bool is_sharded);
/// The same by its words.
bool may_read_from_replica(std::span<const std::string_view> words, bool is_sharded);

/// Whether there is something in a reply that a key which is absent has not.
bool proves_presence(const Value& reply);
/// The same of a whole reply as it came off the wire. No further than to what proves it.
bool proves_presence(std::string_view reply);

}  // namespace sluice::resp
