/// What the scripts of the locks answer who asks for a hold.
#pragma once

#include <string>
#include <string_view>

#include "lock/wait/line.hpp"
#include "sluice/value.hpp"

namespace sluice::lock {

/// {ms, time, foreign}, all integers.
bool is_refusal(const Value& reply);
/// REQUIRES: is_refusal(reply). `foreign_channel`: what to listen to if the reply says so.
Answer refusal_of(const Value& reply, const std::string& foreign_channel);
/// An integer, the token; or a refusal. Throws Error (protocol) for anything else.
Answer answer_of(std::string_view script, const Value& reply, const std::string& foreign_channel);
/// What to throw when the reply is neither.
Error nonsense(std::string_view script, const Value& reply);

}  // namespace sluice::lock
