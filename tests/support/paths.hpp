/// Where the repository and the tree under test lie. In one file alone, so that a compiler cache
/// serves every checkout.
#pragma once

#include <string>
#include <string_view>

namespace sluice::test {

/// A file of the repository: `source_path("docs/lock.md")`.
std::string source_path(std::string_view path = {});

/// What this tree built: `built_path("sluice")`.
std::string built_path(std::string_view path = {});

}  // namespace sluice::test
