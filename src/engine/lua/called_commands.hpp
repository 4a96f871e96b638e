/// The commands that scripts have called, by their names as they were written.
///
/// Lua keeps one copy of each text, so where a name lies tells nearly always which one it is; the bytes decide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/engine.hpp"

namespace sluice::engine {

/// It lives in Lua's memory, which destroys nothing.
class CalledCommands {
 public:
  /// Null: it is not remembered.
  const Engine::Command* find(std::string_view name) const noexcept {
    const Place& place = places_[index_of(name)];
    return std::string_view{place.name.data(), place.size} == name ? place.command : nullptr;
  }
  void remember(std::string_view name, const Engine::Command& command) noexcept {
    Place& place = places_[index_of(name)];
    if (name.size() > place.name.size()) return;
    name.copy(place.name.data(), name.size());
    place.size = name.size();
    place.command = &command;
  }

 private:
  static constexpr std::size_t places = 64;

  struct Place {
    std::array<char, 24> name;
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
