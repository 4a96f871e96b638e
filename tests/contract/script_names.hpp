/// The names of all scripts that lie under src.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "support/paths.hpp"

namespace sluice::test {

/// "-- script NAME" of all files, and the names of files that are one script.
inline std::set<std::string> all_scripts() {
  std::set<std::string> all;
  const std::filesystem::path src = source_path("src");
  for (const auto& entry : std::filesystem::recursive_directory_iterator{src}) {
    if (entry.path().extension() != ".lua") continue;
    std::ifstream file{entry.path()};
    const auto folder = entry.path().parent_path().lexically_relative(src).string();
    bool has_sections = false;
    for (std::string line; std::getline(file, line);) {
      has_sections |= line.starts_with("-- script ") || line.starts_with("-- part ");
      if (line.starts_with("-- script ")) all.insert(folder + '/' + line.substr(10));
    }
    if (!has_sections) all.insert(folder + '/' + entry.path().stem().string());
  }
  return all;
}

}  // namespace sluice::test
