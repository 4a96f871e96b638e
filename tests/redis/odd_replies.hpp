/// Replies such as no server of good will sends, drawn from a seed.
#pragma once

#include <string>

#include "lock/simulation/dice.hpp"

namespace sluice::test {

using simulation::Dice;

struct OddReply {
  std::string bytes;
  bool is_error = false;    ///< it says that nothing was done
  bool never_ends = false;  ///< the bytes are no whole reply
  enum class Then { go_on, close, wait } then = Then::go_on;
};

/// Any type of RESP3, with attributes and empty, null and nested ones.
std::string random_reply(Dice& dice, int depth = 0);

/// A whole reply, or one that breaks off or turns into something else. Behind it the server goes on
/// only where that is RESP: what followed would be taken for the reply to another call.
OddReply odd_reply(Dice& dice);

/// A reply of which a few bytes were changed, dropped or put in, or with the beginning of another.
std::string mutated_reply(Dice& dice);

/// What may stand between replies.
std::string random_push(Dice& dice);

}  // namespace sluice::test
