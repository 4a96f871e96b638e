#include "engine/core/context.hpp"

#include "engine/core/engine.hpp"

namespace sluice::engine {

Keyspace& Context::keys() noexcept { return engine_.keyspace(session_.database); }

void Context::log_instead(Words command) {
  engine_.log(*this, session_.database, command);
  replaced_ = true;
}

std::size_t Context::publish(std::string_view channel, std::string_view payload) {
  const std::size_t receivers = engine_.receivers ? engine_.receivers(channel) : 0;
  if (engine_.receivers && receivers == 0) return 0;  // who listens from now on has missed it
  published_.push_back({std::string{channel}, std::string{payload}});
  return receivers;
}

}  // namespace sluice::engine
