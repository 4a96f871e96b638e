/// An Engine with everything that it offers: the families of commands, and scripts in Lua.
#pragma once

#include "engine/core/engine.hpp"
#include "engine/lua/scripts.hpp"

namespace sluice::engine {

class RedisEngine final : public Engine {
 public:
  /// `seed` decides what SPOP, SRANDMEMBER ... draw; without one each engine draws differently.
  RedisEngine();
  explicit RedisEngine(std::uint64_t seed);

 private:
  ScriptRunner scripts_{*this};
};

}  // namespace sluice::engine
