/// Scripts in Lua out of any bytes, for fuzzing: calls of each function that a script can reach,
/// with arguments that are odd in each way we know, and commands that write. And what must hold
/// after each.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/engine_session.hpp"

namespace sluice::test {

/// The same bytes give the same script.
std::string script_of(std::span<const std::uint8_t> bytes);

/// An engine for one script after another.
class ScriptStage {
 public:
  ScriptStage();

  /// Runs a script and looks at what it has left: where it was ended, the data are as before and
  /// nobody hears of it; and a script that asks all libraries always gets the same answers.
  /// Empty, or what does not hold.
  std::string run(const std::string& script);

 private:
  std::string told();

  engine::EngineSession session_;
  std::string teller_;
  std::string told_;
};

}  // namespace sluice::test
