/// Who is told of changed keys. What an execution has changed is read off its effects, the same as
/// the log has: of a script that is undone, nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/embedded/channels.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

class Trackers {
 public:
  /// As Store::track().
  Listener track(std::string prefix, MessageHandler handler);
  /// Effects have to be noted.
  bool any() const noexcept { return prefixes_->any(); }
  /// Under the engine's lock.
  void post(const std::vector<std::vector<std::string>>& effects);
  /// Outside of it.
  void deliver() { prefixes_->deliver(); }

 private:
  /// Whose channels are prefixes, and whose messages are keys.
  const std::shared_ptr<Channels> prefixes_ = std::make_shared<Channels>();
};

}  // namespace sluice::engine
