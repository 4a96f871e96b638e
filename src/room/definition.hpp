/// Where a room lies in the store, and what is allowed in its definition.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sluice/waiting_room.hpp"
#include "store/key_name.hpp"

namespace sluice::room {

/// For scripts that do the same when they run twice.
inline constexpr CallOptions repeatable{.repeatable = true};

/// In the order of KEYS in room.lua.
struct RoomKeys {
  explicit RoomKeys(std::string_view name)
      : all{key_with_suffix(name, "room"),   key_with_suffix(name, "visitors"),
            key_with_suffix(name, "called"), key_with_suffix(name, "inside"),
            key_with_suffix(name, "heard"),  key_with_suffix(name, "entries")} {}

  const std::string& visitors() const noexcept { return all[1]; }

  std::array<std::string, 6> all;
};

// They throw Error (bad_argument) that names the room, the field, its value and what it may be.
void check_name(std::string_view name);
void check(const WaitingRoomDefinition& definition);
void check(const std::string& name, const WaitingRoomOptions& options);
void check_rate(const std::string& name, std::int64_t rate, std::chrono::milliseconds interval);
void check_inside(const std::string& name, std::int64_t inside);
void check_visitor(const std::string& name, const std::string& visitor);

/// Of a reply of the scripts create and load: as the room was made, whatever was changed since.
/// Empty: there is no such room. A stay of zero: the room knows no longest. Throws Error (corrupt).
std::optional<WaitingRoomDefinition> definition_of(const std::string& name, const Value& reply);

/// "rate 5 there, 6 here; ...": empty when they are the same.
std::string difference(const WaitingRoomDefinition& there, const WaitingRoomDefinition& here);

}  // namespace sluice::room
