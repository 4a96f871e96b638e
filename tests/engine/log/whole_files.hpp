/// Whole files, as bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace sluice::engine::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream{path, std::ios::binary} << content;
}

}  // namespace sluice::engine::test
