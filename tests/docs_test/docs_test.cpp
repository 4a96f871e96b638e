// What the documents show is compiled: every ```cpp block of README.md and docs/ is, word for word,
// a piece of a program in examples/. And what they link to is there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "docs_test/documents.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;

struct Block {
  fs::path document;
  int line = 0;
  Lines text;
};

/// Without the indentation that all lines share.
Lines outdented(Lines lines) {
  auto common = std::string::npos;
  for (const auto& line : lines)
    if (const auto text = line.find_first_not_of(' '); text != std::string::npos)
      common = std::min(common, text);
  for (auto& line : lines) line.erase(0, std::min(common, line.size()));
  return lines;
}

std::vector<Block> cpp_blocks(const fs::path& document, const Lines& lines) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != "```cpp") continue;
    Block block{document, static_cast<int>(i) + 1, {}};
    while (++i < lines.size() && lines[i] != "```") block.text.push_back(lines[i]);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

bool is_piece_of(const Lines& piece, const Lines& whole) {
  const auto wanted = outdented(piece);
  if (wanted.empty()) return false;
  for (std::size_t at = 0; at + wanted.size() <= whole.size(); ++at) {
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(at);
    if (outdented({first, first + static_cast<std::ptrdiff_t>(wanted.size())}) == wanted)
      return true;
  }
  return false;
}

TEST(Docs, EveryCppBlockIsAPieceOfAnExample) {
  std::vector<Lines> examples;
  for (const auto& entry : fs::directory_iterator{test::source_path("examples")})
    if (entry.path().extension() == ".cpp") examples.push_back(read_lines(entry.path()));

  std::size_t blocks = 0;
  for (const auto& document : documents())
    for (const auto& block : cpp_blocks(document, read_lines(document))) {
      ++blocks;
      EXPECT_TRUE(std::ranges::any_of(
          examples, [&](const Lines& example) { return is_piece_of(block.text, example); }))
          << block.document.string() << ':' << block.line
          << ": this block is in no program of examples/\n"
          << fmt::format("{}", fmt::join(block.text, "\n"));
    }
  EXPECT_GT(blocks, 0U);
}

TEST(Docs, LinksWithinTheRepositoryLeadSomewhere) {
  const std::regex link{R"(\]\(([^)#:]+)(#[^)]*)?\))"};
  for (const auto& document : documents()) {
    const auto lines = read_lines(document);
    bool in_code = false;  // where [](auto x) is no link
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].starts_with("```")) in_code = !in_code;
      if (in_code) continue;
      for (std::sregex_iterator it{lines[i].begin(), lines[i].end(), link}, end; it != end; ++it)
        EXPECT_TRUE(fs::exists(document.parent_path() / (*it)[1].str()))
            << document.string() << ':' << i + 1 << ": " << (*it)[1] << " is not there";
    }
  }
}

// The rules themselves.
TEST(DocsRules, ABlockIsFoundByItsWordsAndItsShape) {
  const Lines example{"int main() {", "  if (a) {", "    b();", "  }", "}"};
  EXPECT_TRUE(is_piece_of({"if (a) {", "  b();", "}"}, example));
  EXPECT_TRUE(is_piece_of(example, example));
  EXPECT_FALSE(is_piece_of({"if (a) {", "b();", "}"}, example));
  EXPECT_FALSE(is_piece_of({"if (a) {", "  c();"}, example));
  EXPECT_FALSE(is_piece_of({}, example));
}

TEST(DocsRules, BlocksOfOtherLanguagesAreNotLookedAt) {
  const auto blocks =
      cpp_blocks("x.md", {"text", "```sh", "./run", "```", "```cpp", "int a;", "```"});
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].line, 5);
  EXPECT_EQ(blocks[0].text, (Lines{"int a;"}));
}

}  // namespace
}  // namespace sluice::docs
