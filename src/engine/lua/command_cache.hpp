/// The commands that scripts have called, by their names as they were written.
///
/// Lua keeps one copy of each string, so the address of a name selects its place; the bytes decide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/core/engine.hpp"

namespace sluice::engine {

/// It lives in Lua's memory, which destroys nothing.
class CommandCache {
 public:
  /// Null: it is not remembered.
  const Engine::Command* find(std::string_view name) const noexcept {
    const auto at = index_of(name);
    for (const Place* const place : {&places_[at], &places_[at ^ 1]})
      if (std::string_view{place->name.data(), place->size} == name) return place->command;
    return nullptr;
  }
  void remember(std::string_view name, const Engine::Command& command) noexcept {
    if (name.size() > longest) return;
    // Two names that want the same place must not drive each other out at every call.
    const auto at = index_of(name);
    places_[at ^ 1] = places_[at];
    Place& place = places_[at];
    name.copy(place.name.data(), name.size());
    place.size = name.size();
    place.command = &command;
  }

 private:
  static constexpr std::size_t places = 64;
  static constexpr std::size_t longest = 24;

  struct Place {
    std::array<char, longest> name;
    std::size_t size = 0;
    const Engine::Command* command = nullptr;
  };

  static std::size_t index_of(std::string_view name) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(name.data());
    return (at >> 4 ^ at >> 10) % places;
  }

  std::array<Place, places> places_;
};

}  // namespace sluice::engine
