#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "floors_test/comment_rules.hpp"
#include "floors_test/house_rules.hpp"
#include "floors_test/style_rules.hpp"
#include "support/paths.hpp"

namespace sluice::floors {
namespace {

const SourceTree& repository() {
  static const auto tree = read_source_tree(test::source_path());
  return tree;
}

void expect_none(const Findings& findings) {
  EXPECT_TRUE(findings.empty()) << fmt::format("{}", fmt::join(findings, "\n"));
}

TEST(House, IsReadWhole) {
  EXPECT_TRUE(repository().contains("src/base/clock.cpp"));
  EXPECT_TRUE(repository().contains("include/sluice/store.hpp"));
  EXPECT_TRUE(repository().contains("tests/floors_test/floors_test.cpp"));
}

TEST(House, IncludesGoDown) { expect_none(check_floors(repository())); }
TEST(House, LibrariesStayInTheirRooms) { expect_none(check_libraries(repository())); }
TEST(House, NobodyReadsAClockButTheClock) { expect_none(check_clocks(repository())); }
TEST(House, ThreadsTakeNoSignals) { expect_none(check_threads(repository())); }
TEST(House, HeadersAreReadOnce) { expect_none(check_headers(repository())); }
TEST(House, EverySourceIsBuilt) { expect_none(check_sources_are_built(repository())); }
TEST(House, LinesFitInto100Columns) { expect_none(check_lines(repository())); }
TEST(House, FunctionsFitOnAScreen) { expect_none(check_functions(repository())); }
TEST(House, AClassHasItsNameToItself) { expect_none(check_class_names(repository())); }
TEST(House, TheFormatterIsCompiledOnce) { expect_none(check_formatting(repository())); }
TEST(House, HeadersOfTheStandardLibraryAreNamed) {
  expect_none(check_standard_headers(repository()));
}
TEST(House, ParagraphsOfCommentsAreWhole) { expect_none(check_paragraphs(repository())); }
TEST(House, ExamplesHaveAStatementOnEachLine) { expect_none(check_examples(repository())); }
TEST(House, TheHeaderOfAllHasAllButTheSales) { expect_none(check_header_of_all(repository())); }

// The rules themselves, on files that break them.

using Lines = Findings;

TEST(Floors, AnIncludeUpwardsIsFoundWithFileAndLine) {
  EXPECT_EQ(check_floors({{"src/base/log.cpp", "// why\n#include \"store/waiter.hpp\"\n"}}),
            (Lines{"src/base/log.cpp:2: base may not include store (\"store/waiter.hpp\")"}));
}

TEST(Floors, NeighboursDoNotKnowEachOther) {
  EXPECT_EQ(check_floors({{"src/lock/mutex.cpp", "#include \"sluice/number.hpp\"\n"}}),
            (Lines{"src/lock/mutex.cpp:1: lock may not include number (\"sluice/number.hpp\")"}));
  EXPECT_EQ(check_floors({{"src/redis/client.cpp", "#include \"engine/engine.hpp\"\n"}}).size(),
            1U);
}

TEST(Floors, DownwardsAndTheOwnFolderAreFree) {
  EXPECT_EQ(
      check_floors(
          {{"src/lock/mutex.cpp",
            "#include \"lock/wire.hpp\"\n#include \"lock/acquire.lua.hpp\"\n"
            "#include \"store/combiner.hpp\"\n#include \"sluice/clock.hpp\"\n#include <string>\n"},
           {"src/sale/sale.cpp", "#include \"number/period.hpp\"\n"},
           {"tests/base/clock_test.cpp", "#include \"engine/engine.hpp\"\n"}}),
      Lines{});
}

TEST(Floors, TheRoomsOfAFolderIncludeDownwards) {
  EXPECT_EQ(check_floors({{"src/engine/log/record.cpp", "#include \"engine/core/context.hpp\"\n"}}),
            (Lines{"src/engine/log/record.cpp:1: engine/log may not include engine/core "
                   "(\"engine/core/context.hpp\")"}));
  EXPECT_EQ(check_floors({{"src/engine/lua/a.cpp", "#include \"engine/embedded_store.hpp\"\n"}}),
            (Lines{"src/engine/lua/a.cpp:1: engine/lua may not include engine "
                   "(\"engine/embedded_store.hpp\")"}));
  EXPECT_EQ(check_floors({{"src/engine/attic/a.cpp", "#include \"engine/core/context.hpp\"\n"}}),
            (Lines{"src/engine/attic/a.cpp:1: the room engine/attic has no place in floors.hpp"}));
  EXPECT_EQ(check_floors({{"src/engine/lua/reply.cpp", "#include \"engine/core/reply.hpp\"\n"},
                          {"src/engine/embedded_store.cpp", "#include \"engine/log/file.hpp\"\n"},
                          {"src/lock/mutex/mutex.cpp", "#include \"lock/wait/line.hpp\"\n"}}),
            Lines{});
}

TEST(Floors, APublicHeaderShowsNothingOfSrcAndNoLibrary) {
  const SourceTree tree{
      {"include/sluice/lock.hpp", "#include \"store/waiter.hpp\"\n#include <fmt/format.h>\n"}};
  EXPECT_EQ(check_floors(tree),
            (Lines{"include/sluice/lock.hpp:1: a public header shows \"store/waiter.hpp\""}));
  EXPECT_EQ(check_libraries(tree),
            (Lines{"include/sluice/lock.hpp:2: a public header shows <fmt/format.h>"}));
}

TEST(Floors, APublicHeaderStandsOnTheFloorOfItsNoun) {
  EXPECT_EQ(
      check_floors({{"include/sluice/clock.hpp", "#include \"sluice/store.hpp\"\n"}}),
      (Lines{"include/sluice/clock.hpp:1: base may not include store (\"sluice/store.hpp\")"}));
  EXPECT_EQ(check_floors({{"include/sluice/sluice.hpp", "#include \"sluice/lock.hpp\"\n"}}),
            Lines{});
}

TEST(Floors, ProgramsSeePublicHeadersAlone) {
  EXPECT_EQ(check_floors({{"src/cli/lock.cpp",
                           "#include \"sluice/lock.hpp\"\n#include \"cli/command.hpp\"\n"}}),
            Lines{});
  EXPECT_EQ(check_floors({{"src/cli/lock.cpp", "#include \"lock/wire.hpp\"\n"}}),
            (Lines{"src/cli/lock.cpp:1: cli may not include lock (\"lock/wire.hpp\")"}));
  EXPECT_EQ(check_floors({{"examples/sale.cpp", "#include \"store/combiner.hpp\"\n"}}).size(), 1U);
  const SourceTree user{{"examples/sale.cpp", "#include <sluice/sluice.hpp>\n"}};
  EXPECT_EQ(check_floors(user), Lines{});
  EXPECT_EQ(check_libraries(user), Lines{});
  EXPECT_EQ(check_floors({{"src/cli/lock.cpp", "#include \"sluice/sluice.hpp\"\n"}}).size(), 1U);
}

TEST(Floors, WhatHasNoPlaceIsFound) {
  EXPECT_EQ(check_floors({{"src/attic/box.cpp", "#include \"attic/box.hpp\"\n"}}),
            (Lines{"src/attic/box.cpp:1: 'attic/box.cpp' has no place in floors.hpp"}));
  EXPECT_EQ(check_floors({{"src/lock/mutex.cpp", "#include \"sluice/attic.hpp\"\n"}}).size(), 1U);
}

TEST(Libraries, AreBoughtForOneRoom) {
  EXPECT_EQ(check_libraries({{"src/sale/sale.cpp", "#include <soci.h>\n"}}),
            (Lines{"src/sale/sale.cpp:1: <soci.h> belongs to sale/sql/ examples/fenced_books"}));
  EXPECT_EQ(check_libraries({{"src/sale/sql/read.cpp", "#include <soci.h>\n"},
                             {"src/base/sha1.cpp", "#include <openssl/evp.h>\n"},
                             {"src/engine/scripts.cpp", "#include <lua.hpp>\n"},
                             {"src/number/period.cpp", "#include <cctz/time_zone.h>\n"},
                             {"examples/asio_threads.cpp", "#include <boost/asio/post.hpp>\n"}}),
            Lines{});
  EXPECT_EQ(check_libraries({{"src/lock/mutex.cpp", "#include <sys/socket.h>\n"}}).size(), 1U);
  EXPECT_EQ(
      check_libraries({{"src/lock/mutex.cpp", "#include <attic/box.h>\n"}}),
      (Lines{"src/lock/mutex.cpp:1: <attic/box.h> is of a library that floors.hpp does not list"}));
}

TEST(Clocks, AReaderIsFound) {
  const std::string reads = "const auto t = std::chrono::steady_clock::now();\n";
  EXPECT_EQ(check_clocks({{"src/lock/held.cpp", "\n" + reads}}),
            (Lines{"src/lock/held.cpp:2: reads a clock itself; take sluice::Clock"}));
  EXPECT_EQ(check_clocks({{"src/id/a.cpp", "x = time(nullptr);\n"},
                          {"src/id/b.cpp", "clock_gettime(0, &t);\n"}})
                .size(),
            2U);
  EXPECT_EQ(check_clocks({{"src/base/clock.cpp", reads},
                          {"bench/a.cpp", reads},
                          {"src/id/a.cpp", "// ::now()\n"},
                          {"src/id/b.cpp", "store.time();\n"},
                          {"include/sluice/lock.hpp", "when - AnyClock::now()\n"}}),
            Lines{});
}

TEST(Threads, AStartIsFound) {
  EXPECT_EQ(check_threads({{"src/lock/a.cpp", "\nthread_ = std::thread{[] {}};\n"}}),
            (Lines{"src/lock/a.cpp:2: starts a thread that takes signals; take start_thread"}));
  EXPECT_EQ(check_threads({{"src/id/a.cpp", "std::jthread worker{run};\n"},
                           {"src/id/b.cpp", "std::async(std::launch::async, run);\n"}})
                .size(),
            2U);
  EXPECT_EQ(check_threads({{"src/base/thread.hpp", "return std::thread{body};\n"},
                           {"src/cli/bench.cpp", "std::jthread crew{run};\n"},
                           {"src/id/a.cpp", "std::thread thread_;\nstd::thread::id runner_;\n"}}),
            Lines{});
}

TEST(Headers, WithoutPragmaOnceAreFound) {
  EXPECT_EQ(check_headers({{"src/id/a.hpp", "int a;\n"}}),
            (Lines{"src/id/a.hpp:1: has no #pragma once"}));
  EXPECT_EQ(check_headers(
                {{"src/id/a.hpp", "/// A.\n#pragma once\n"}, {"src/id/b.hpp", "#pragma once\n"}}),
            Lines{});
}

TEST(Sources, ThatNoCMakeFileNamesAreFound) {
  const SourceTree tree{{"src/id/CMakeLists.txt",
                         "sluice_folder(id\n  SOURCES a.cpp part/b.cpp)\n"
                         "sluice_embed_lua(sluice_id id/next.lua)  # c.cpp\n"},
                        {"src/id/a.cpp", ""},
                        {"src/id/part/b.cpp", ""},
                        {"src/id/c.cpp", ""},
                        {"src/id/next.lua", "-- include id/part.lua\n"},
                        {"src/id/part.lua", ""},
                        {"src/id/last.lua", ""}};
  EXPECT_EQ(check_sources_are_built(tree),
            (Lines{"src/id/c.cpp:1: is named by no CMakeLists.txt",
                   "src/id/last.lua:1: is named by no CMakeLists.txt"}));
}

TEST(Style, ALineTooLongIsFound) {
  const std::string fits(100, 'x');
  EXPECT_EQ(check_lines({{"src/id/a.def", fits + "\n" + fits + "x\n"}}),
            (Lines{"src/id/a.def:2: 101 columns"}));
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\u00e9";  // two bytes, one column
  EXPECT_EQ(check_lines({{"src/id/a.lua", wide}}), Lines{});
}

TEST(Style, AFunctionTooLongIsFound) {
  const auto body = [](const std::string& indent, int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += indent + "  work();\n";
    return text;
  };
  EXPECT_EQ(check_functions(
                {{"src/id/a.cpp", "\nint a(int x,\n      int y) {\n" + body("", 58) + "}\n"}}),
            (Lines{"src/id/a.cpp:2: a function of 61 lines"}));
  EXPECT_EQ(check_functions({{"src/id/a.cpp", "int a() {\n" + body("", 58) + "}\n"}}), Lines{});
  EXPECT_EQ(check_functions(
                {{"src/id/a.hpp", "class A {\n  int a() {\n" + body("  ", 59) + "  }\n};\n"}}),
            (Lines{"src/id/a.hpp:2: a function of 61 lines"}));
  EXPECT_EQ(check_functions({{"src/id/a.hpp", "struct A {\n" + body("", 80) + "};\n"},
                             {"tests/id/a.cpp", "int a() {\n" + body("", 80) + "}\n"}}),
            Lines{});
}

TEST(Style, AClassNameInAFamilyOfNamespacesIsFound) {
  const auto of = [](const std::string& space, const std::string& what) {
    return "namespace " + space + " {\n" + what + "\n}  // namespace " + space + "\n";
  };
  EXPECT_EQ(check_class_names({{"src/id/a.hpp", of("sluice", "class Line {")},
                               {"src/id/b.hpp", of("sluice::id", "struct Line final : Base {")}}),
            (Lines{"src/id/b.hpp:2: sluice::id::Line is also sluice::Line (src/id/a.hpp:2)"}));
  EXPECT_EQ(check_class_names(
                {{"src/id/a.hpp", of("sluice::id", "class Line {")},
                 {"src/id/b.hpp", of("sluice::lock", "class Line {")},
                 {"src/id/c.hpp", of("sluice", "class Line;")},
                 {"src/id/d.cpp", "namespace sluice {\n" + of("", "class Line {") + "}\n"}}),
            Lines{});
}

TEST(Style, AFormatterInAFileIsFound) {
  EXPECT_EQ(check_formatting({{"src/id/a.cpp", "// format_to\nfmt::format_to(out, text);\n"},
                              {"tests/id/a.cpp", "fmt::format_to(out, text);\n"}}),
            (Lines{"src/id/a.cpp:2: append fmt::format()"}));
}

TEST(Style, AStandardHeaderThatNobodyNamesIsFound) {
  EXPECT_EQ(check_standard_headers({{"src/id/a.hpp", "// std::set\nstd::vector<int> a;\n"}}),
            (Lines{"src/id/a.hpp:2: wants <vector>"}));
  EXPECT_EQ(
      check_standard_headers({{"src/id/a.hpp", "#include <vector>\n"},
                              {"src/id/b.hpp", "#include \"id/a.hpp\"\nstd::vector<int> b;\n"},
                              {"src/id/c.cpp", "auto text = \"std::vector\";\n"}}),
      Lines{});
}

TEST(Comments, WordsThatWereLeftOverAreFound) {
  const std::string full = "/// " + std::string(95, 'x') + "\n";
  EXPECT_EQ(check_paragraphs({{"src/id/a.hpp", full + "/// the\n///   last minutes\n"}}),
            (Lines{"src/id/a.hpp:2: left over of the line before"}));
  EXPECT_EQ(check_paragraphs(
                {{"src/id/a.hpp", "/// Outcomes:\n/// none\n///   last\n"},  // there was room
                 {"src/id/b.hpp", full + "///   end.\n/// Threads: any.\n"},
                 {"src/id/d.hpp", full + "/// of them.\n///   id [URL]\n"},
                 {"src/id/c.hpp", full + "/// this:\n///     code();\n"}}),
            Lines{});
}

TEST(Comments, ABrokenExampleIsFound) {
  const auto of = [](const std::string& line) {
    return check_examples({{"include/sluice/id.hpp", "///     " + line + "\n"}}).size();
  };
  EXPECT_EQ(of("\"42\"}).get(); if (!written) return;"), 1U);
  EXPECT_EQ(of("users.get(id, [&](const std::string& id) { return select_name(id);"), 1U);
  EXPECT_EQ(of("for (int i = 0; i < 3; ++i) print(\"a; b\");  // once; twice"), 0U);
  EXPECT_EQ(of("{ const std::unique_lock writing{prices}; price_list = load(); }"), 0U);
  EXPECT_EQ(of("const auto token = keys.sign({.subject = \"ann\","), 0U);
}

TEST(Headers, TheOneOfAllThatLacksANounIsFound) {
  EXPECT_EQ(check_header_of_all({{"include/sluice/sluice.hpp", "#include \"sluice/lock.hpp\"\n"},
                                 {"include/sluice/lock.hpp", "#include \"sluice/mutex.hpp\"\n"},
                                 {"include/sluice/mutex.hpp", ""},
                                 {"include/sluice/sale.hpp", ""},
                                 {"include/sluice/id.hpp", ""}}),
            (Lines{"include/sluice/sluice.hpp:1: lacks sluice/id.hpp"}));
}

}  // namespace
}  // namespace sluice::floors
