/// One connection to an engine on a clock of its own, for tests: replies as Values, effects as
/// text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/commands/redis_engine.hpp"
#include "engine/core/reply.hpp"

namespace sluice::engine {

using Line = std::vector<std::string>;

/// Splits at blanks; "..." keeps blanks and knows \\ \" \n \0 \xNN.
Line words_of(std::string_view text);
/// Words as one line, quoted where words_of() needs it.
std::string text_of(const Line& words);

class EngineSession {
 public:
  explicit EngineSession(int protocol = 3, std::uint64_t seed = 1) : engine{seed} {
    session.protocol = protocol;
    engine.log_database = 0;
  }

  Value run(const Line& words);
  Value run(std::string_view text) { return run(words_of(text)); }

  /// What the latest run logged, each effect as a line, joined by "; ".
  std::string effects_text() const;

  RedisEngine engine;
  Session session;
  std::int64_t now_us = 1'700'000'000'000'000;
  /// Of the latest run.
  std::vector<Line> effects;
  Line signalled;
  std::vector<Block> blocks;
  std::vector<Context::Published> published;
};

/// All that is in the databases, sorted, one line a key, with its time of expiry.
std::string dump(EngineSession& session);
/// The same, and what it leaves open: encodings, the order within small values, streams in full.
std::string state_of(EngineSession& session);

}  // namespace sluice::engine
