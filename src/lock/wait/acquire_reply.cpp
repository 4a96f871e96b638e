#include "lock/wait/acquire_reply.hpp"

#include <algorithm>

namespace sluice::lock {

using std::chrono::milliseconds;

bool is_refusal(const Value& reply) {
  return reply.is_aggregate() && (reply.as_items().size() == 3 || reply.as_items().size() == 4) &&
         std::ranges::all_of(reply.as_items(),
                             [](const Value& item) { return item.type() == Value::Type::integer; });
}

AcquireReply refusal_of(const Value& reply, std::string_view foreign_channel,
                        std::string_view queue) {
  const auto& items = reply.as_items();
  return {.granted = std::nullopt,
          .left = milliseconds{items[0].as_integer()},
          .time = std::chrono::abs(milliseconds{items[1].as_integer()}),
          .foreign_channel = std::string{items[2].as_integer() == 1 ? foreign_channel : ""},
          .queue = std::string{queue},
          .came = items.size() > 3 ? static_cast<std::uint64_t>(items[3].as_integer()) : 0,
          .unheard = items[1].as_integer() < 0};
}

AcquireReply acquire_reply_of(std::string_view script, const Value& reply,
                              std::string_view foreign_channel, std::string_view queue) {
  if (reply.type() == Value::Type::integer)
    return {.granted = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
            .foreign_channel = {},
            .queue = {}};
  if (is_refusal(reply)) return refusal_of(reply, foreign_channel, queue);
  throw unexpected_reply(script, reply);
}

Error unexpected_reply(std::string_view script, const Value& reply) {
  return Error{
      Errc::protocol,
      std::string{script} + " answered " + to_string(reply) + ", which is none of its replies",
      Effect::unknown};
}

}  // namespace sluice::lock
