/// What the scripts of the locks reply to a request for a hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/held.hpp"
#include "sluice/store.hpp"
#include "sluice/value.hpp"

namespace sluice::lock {

/// The server's reply to one request for a hold.
struct AcquireReply {
  std::optional<FencingToken> granted;
  /// Refused: when the first waiter of this process looks again; -1: whenever it likes.
  std::chrono::milliseconds left{};
  std::chrono::milliseconds time{};  ///< refused: the server's time
  /// Set when the holder in the way does not know the queue. It publishes its release here.
  std::string foreign_channel;
  std::string queue;       ///< refused: where it waits
  std::uint64_t came = 0;  ///< refused: since when it waits, as the server has it; 0: not said
  bool unheard = false;  ///< ... and in a cluster: this process is not heard where the lock is now
};

/// {ms, time, foreign} or {ms, time, foreign, came}, all integers. The time is negative where this
/// process is not heard.
bool is_refusal(const Value& reply);
/// REQUIRES: is_refusal(reply). `foreign_channel`: what to listen to if the reply says so.
AcquireReply refusal_of(const Value& reply, std::string_view foreign_channel,
                        std::string_view queue);
/// An integer, the token; or a refusal. Throws Error (protocol) for anything else.
AcquireReply acquire_reply_of(std::string_view script, const Value& reply,
                              std::string_view foreign_channel, std::string_view queue);
/// What to throw when a script replies what it cannot have replied.
Error unexpected_reply(std::string_view script, const Value& reply);

}  // namespace sluice::lock
