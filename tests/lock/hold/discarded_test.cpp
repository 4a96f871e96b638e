// What a compiler says of holds that nobody keeps.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "support/paths.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

std::string compiler() {
  std::ifstream cache{test::built_path("CMakeCache.txt")};
  constexpr std::string_view name = "CMAKE_CXX_COMPILER:";
  for (std::string line; std::getline(cache, line);)
    if (line.starts_with(name)) return line.substr(line.find('=') + 1);
  return "c++";
}

/// What the compiler that builds this says of the function body `text`.
std::string said_of(const std::string& text) {
  const test::TempDir folder;
  const auto source = folder / "snippet.cpp";
  std::ofstream{source} << "#include \"sluice/mutex.hpp\"\n"
                           "void snippet(sluice::Mutex& mutex) {\n"
                        << text << "\n}\n";
  const std::string command = compiler() + " -std=c++23 -fsyntax-only -I" +
                              test::source_path("include") + ' ' + source.string() + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string said;
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe))
    said.append(part.data(), size);
  EXPECT_EQ(::pclose(pipe), 0) << said;
  return said;
}

TEST(Frictions, U01_AHoldThatIsNotKeptIsWarnedOf) {
  const auto warns = [](const std::string& text) {
    return said_of(text).find("warning") != std::string::npos;
  };
  EXPECT_TRUE(warns("mutex.acquire().get();")) << "it is released at once";
  EXPECT_TRUE(warns("mutex.acquire();")) << "it is never asked for";
  EXPECT_FALSE(warns("auto held = mutex.acquire().get(); held.release().get();"));
}

}  // namespace
}  // namespace sluice
