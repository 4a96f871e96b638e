/// What LMPOP, ZMPOP and the commands that wait share.
#pragma once

#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/reply.hpp"

namespace sluice::engine {

/// "numkeys key [key ...] LEFT|RIGHT|MIN|MAX [COUNT count]"
struct PopKeys {
  Words keys;
  std::string_view end;  ///< the word that says from where
  std::int64_t count = 1;
};

/// Reads it from words[place] on. False: refused.
bool read_pop_keys(Words words, std::size_t place, PopKeys& out, Reply& reply);

/// Nothing was there: blocks, or in a script replies as if the time was up.
void wait_for(Context& context, Words keys, std::int64_t timeout_ms, Reply& reply);

}  // namespace sluice::engine
