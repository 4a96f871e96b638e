/// What clients cost that have connected and not logged in.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace sluice::test {

/// Tells the resident memory of the proxy `program` (empty: that of this tree) before, while and
/// after so many strangers are there: silent ones, ones in the middle of a word, and ones that have
/// shaken hands by TLS. False: not all of them could be there.
bool weigh_strangers(std::size_t strangers, const std::string& program,
                     const std::function<void(const std::string&)>& tell);

}  // namespace sluice::test
