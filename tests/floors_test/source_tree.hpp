/// The text files of a repository, in memory, by their path from its root.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace sluice::floors {

using SourceTree = std::map<std::string, std::string>;

/// Reads what the rules look at: C++, Lua, tables (.def) and CMakeLists.txt in the folders that
/// hold code.
SourceTree read_source_tree(const std::filesystem::path& root);

}  // namespace sluice::floors
