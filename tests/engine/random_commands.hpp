/// Streams of commands that a seed decides, over few keys, so that they meet.
#pragma once

#include <cstdint>

#include "engine/dice.hpp"
#include "engine/engine_session.hpp"

namespace sluice::engine {

class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : dice_(seed) {}

  /// Commands whose reply depends neither on chance nor on the time.
  Line next();
  /// Also those that draw by chance or end after a short time.
  Line next_with_chance();

 private:
  Line filled(std::string_view text);
  std::string fill(std::string_view placeholder);

  Dice dice_;
};

/// Whether the elements of a reply to `command` have no order.
bool is_unordered(std::string_view command);

}  // namespace sluice::engine
