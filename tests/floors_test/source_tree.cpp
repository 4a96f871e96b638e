#include "floors_test/source_tree.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace sluice::floors {
namespace {

namespace fs = std::filesystem;

constexpr std::array folders{"include", "src", "tests", "bench", "examples"};
constexpr std::array<std::string_view, 5> kinds{".hpp", ".cpp", ".lua", ".def", ".txt"};

bool is_read(const fs::path& path) {
  const auto kind = path.extension().string();
  if (kind == ".txt") return path.filename() == "CMakeLists.txt";
  return std::ranges::find(kinds, kind) != kinds.end();
}

std::string read(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

SourceTree read_source_tree(const fs::path& root) {
  SourceTree tree;
  for (const char* const folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator{root / folder})
      if (entry.is_regular_file() && is_read(entry.path()))
        tree.emplace(fs::relative(entry.path(), root).generic_string(), read(entry.path()));
  return tree;
}

}  // namespace sluice::floors
