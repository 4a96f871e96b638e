/// SORT reads more keys than it names: those that BY and GET make of a pattern and each element.
#pragma once

#include <optional>
#include <vector>

#include "proxy/protocol/protocol.hpp"
#include "proxy/ring/ring.hpp"

namespace sluice::proxy {

/// Adds the positions of the patterns whose hash tag tells the home of all the keys that they make.
/// False: a pattern has no such tag, so its keys may be anywhere.
bool add_sort_patterns(Words words, std::optional<HashTag> tag, std::vector<std::size_t>& keys);

}  // namespace sluice::proxy
