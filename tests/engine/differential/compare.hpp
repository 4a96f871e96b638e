/// When two replies, or two databases, are the same although they are not equal: order where none
/// is promised, clocks that differ by the time between two calls.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/differential/grammar.hpp"
#include "sluice/value.hpp"

namespace sluice::test {

/// The reply to `command` in a form that two right servers share.
Value canonical(const Command& command, Value reply);
/// Both canonical. Besides equal ones those that the table of known differences allows.
bool same_reply(const Command& command, const Value& theirs, const Value& ours);

struct Entry {
  std::string type;
  Value content;
  std::int64_t expires_ms = -1;
};
using Dump = std::map<std::string, Entry>;
using Run = std::function<Value(const Command&)>;

/// Everything in a database, asked for with ordinary commands.
Dump dump(const Run& run);
/// Empty, or what differs first.
std::string difference(const Dump& one, const Dump& other);

}  // namespace sluice::test
