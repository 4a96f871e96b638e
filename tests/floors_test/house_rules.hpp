/// The rules that a compiler does not know: floors, bought libraries, clocks, headers, the list of
/// sources.
#pragma once

#include <string>
#include <vector>

#include "floors_test/source_tree.hpp"

namespace sluice::floors {

/// "src/base/log.cpp:3: base may not include store (\"store/waiter.hpp\")"
using Findings = std::vector<std::string>;

/// Includes go to the own folder, or down, as floors.hpp allows, also between the rooms of a
/// folder; public headers include the standard library and each other alone.
Findings check_floors(const SourceTree& tree);
/// Libraries stay where floors.hpp puts them.
Findings check_libraries(const SourceTree& tree);
/// Nobody but the Clock reads a clock of the machine.
Findings check_clocks(const SourceTree& tree);
Findings check_threads(const SourceTree& tree);
/// Every header has `#pragma once`.
Findings check_headers(const SourceTree& tree);
/// sluice/sluice.hpp includes every public header, by others or itself, but those of flash sales.
Findings check_header_of_all(const SourceTree& tree);
/// Every source and script is named by the CMakeLists.txt of its folder or of the next one above
/// that has one; a script may be included by another instead.
Findings check_sources_are_built(const SourceTree& tree);

}  // namespace sluice::floors
