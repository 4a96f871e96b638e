// What the documents state and the program's own tables know: metrics, settings of URLs, commands
// of the engine and of the proxy's administration, commands that the scripts run, exit codes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "docs_test/documents.hpp"
#include "resp/command_table.hpp"
#include "sluice/error.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"
#include "support/paths.hpp"

namespace sluice::docs {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

std::string capitals(std::string_view text) {
  std::string word{text};
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word;
}

/// What `pattern` finds in `text`, its first group, in capitals.
Names found_in(const std::string& text, const std::regex& pattern) {
  Names words;
  for (std::sregex_iterator it{text.begin(), text.end(), pattern}, end; it != end; ++it)
    words.insert(capitals((*it)[1].str()));
  return words;
}

Names identifiers_of(std::string_view text) {
  Names found;
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else if (!word.empty()) {
      found.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) found.insert(word);
  return found;
}

Names difference(const Names& all, const Names& known) {
  Names rest;
  std::ranges::set_difference(all, known, std::inserter(rest, rest.end()));
  return rest;
}

// --- metrics ---

std::string metric_row(std::string_view name, std::string_view kind, std::string_view help) {
  return fmt::format("| `{}` | {} | {} |", name, kind, help);
}

/// As Prometheus gets a row of counters.def (see proxy/watch/metrics.cpp).
std::string proxy_row(std::string_view level, std::string name, std::string_view kind,
                      std::string_view help) {
  if (!name.starts_with("client_") && !name.starts_with("server_"))
    name = fmt::format("{}_{}", level, name);
  if (kind == "counter") name += "_total";
  if (kind == "timestamp") {
    name += "_seconds";
    help = "When the server was last ejected, in seconds since the epoch; 0: it never was";
  }
  if (help.starts_with("# ")) help.remove_prefix(2);
  return metric_row("sluice_proxy_" + name, kind == "counter" ? "counter" : "gauge", help);
}

std::vector<std::string> metric_rows() {
  std::vector<std::string> rows;
  for (const auto& row : metrics_table()) rows.push_back(metric_row(row.name, "counter", row.help));
  for (const auto& row : histograms_table())
    rows.push_back(metric_row(row.name, "histogram", row.help));
#define COUNTER(name, kind, of_twemproxy, help) \
  rows.push_back(proxy_row(level, #name, #kind, help));
  std::string_view level = "pool";
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
  level = "server";
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
#undef COUNTER
  return rows;
}

/// Of `sluice serve` and `sluice engine serve`: their tests compare them with what they answer.
bool is_of_service(std::string_view metric) {
  return metric.starts_with("sluice_http_") || metric.starts_with("sluice_service_") ||
         metric.starts_with("sluice_port_");
}

TEST(DocsFacts, MetricsAreThoseOfTheTables) {
  const auto rows = metric_rows();
  std::vector<std::string> written;
  for (const auto& line : read_lines(test::source_path("docs/metrics.md")))
    if (line.starts_with("| `sluice_") && !is_of_service(line.substr(3))) written.push_back(line);
  EXPECT_EQ(written, rows) << "docs/metrics.md has to say:\n"
                           << fmt::to_string(fmt::join(rows, "\n"));
}

TEST(DocsFacts, MetricsThatAreNamedExist) {
  std::string all;
  for (const auto& row : metric_rows()) all += row;
  const std::regex name{R"(`(sluice_\w+_(?:total|seconds)))"};
  for (const auto& document : documents())
    for (const auto& line : read_lines(document))
      for (std::sregex_iterator it{line.begin(), line.end(), name}, end; it != end; ++it)
        EXPECT_TRUE(all.find((*it)[1]) != std::string::npos ||
                    (*it)[1].str().starts_with("sluice_proxy_") || is_of_service((*it)[1].str()))
            << document << " names " << (*it)[1];
}

// --- URLs ---

/// What open() says that a kind of store knows, asked with a setting that none has.
Names settings_of(const std::string& url) {
  try {
    open(url + "?no_such_setting=1");
  } catch (const Error& error) {
    const auto begin = error.message().find("there are ");
    if (begin == std::string::npos) return {};
    return identifiers_of(error.message().substr(begin + 10));
  }
  return {};
}

Names settings_in_page(std::string_view kind) {
  Names words;
  for (const auto& row : rows_of("docs/urls.md", kind))
    if (row.size() >= 4 && row.front() == fmt::format("`{}`", kind))
      words.merge(quoted_words(row[1]));
  return words;
}

TEST(DocsFacts, SettingsOfUrlsAreThoseThatOpenKnows) {
  EXPECT_EQ(settings_in_page("embedded"), settings_of("embedded:"));
  EXPECT_EQ(settings_in_page("redis"), settings_of("redis://127.0.0.1:1"));
  EXPECT_GT(settings_in_page("redis").size(), 3U);
  auto with_tls = settings_in_page("redis");
  with_tls.merge(settings_in_page("rediss"));
  EXPECT_EQ(with_tls, settings_of("rediss://127.0.0.1:1"));
  auto with_sentinels = settings_in_page("redis");
  with_sentinels.merge(settings_in_page("redis+sentinel"));
  with_sentinels.merge(settings_in_page("replicas"));
  EXPECT_EQ(with_sentinels, settings_of("redis+sentinel://127.0.0.1:1/m"));
  auto with_replicas = settings_in_page("redis");
  with_replicas.merge(settings_in_page("replicas"));
  EXPECT_EQ(with_replicas, settings_of("redis+cluster://127.0.0.1:1"));
}

// --- commands ---

/// Whether the engine has this command, as it answers the name alone.
bool knows(Store& store, std::string_view name) {
  const auto bar = std::min(name.find('|'), name.size());
  std::vector<std::string_view> words{name.substr(0, bar)};
  if (bar < name.size()) words.push_back(name.substr(bar + 1));
  try {
    store.run(Words{words}).get();
  } catch (const Error& error) {
    return !error.message().contains("unknown command") &&
           !error.message().contains("state of a connection");  // the Store lets no caller use it
  }
  return true;
}

TEST(DocsFacts, CommandsOfTheEngineAreThoseThatItKnows) {
  const auto page = read_text("docs/embedded.md");
  const auto begin = page.find("| kind | commands |");
  ASSERT_NE(begin, std::string::npos);
  const auto written = quoted_words(page.substr(begin, page.find("\n\n", begin) - begin));

  const auto store = open("embedded:");
  Names known;
  for (const auto& spec : resp::all_commands())
    if (!spec.has(resp::flag_container) && knows(*store, spec.name))
      known.insert(capitals(spec.name.substr(0, spec.name.find('|'))));
  EXPECT_EQ(difference(known, written), Names{}) << "missing in docs/embedded.md";
  EXPECT_EQ(difference(written, known), Names{}) << "the engine does not know them";
}

/// The commands that the scripts and sources of src/FOLDER send to the store.
Names commands_of(std::string_view folder) {
  static const std::regex in_script{R"(call\(\s*'(\w+)')"};
  static const std::regex in_source{R"re((?:(?:run|add)\(\s*|words)\{\s*"([A-Z]+)")re"};
  Names words;
  const fs::path root{test::source_path(fmt::format("src/{}", folder))};
  EXPECT_TRUE(fs::exists(root)) << root << " is missing: docs_test has to be told its new name";
  if (!fs::exists(root)) return words;
  for (const auto& entry : fs::recursive_directory_iterator{root}) {
    const auto suffix = entry.path().extension();
    if (suffix != ".lua" && suffix != ".cpp" && suffix != ".hpp") continue;
    const auto& pattern = suffix == ".lua" ? in_script : in_source;
    const auto text = fmt::to_string(fmt::join(read_lines(entry.path()), "\n"));
    words.merge(found_in(text, pattern));
  }
  return words;
}

/// A row of the table of permissions in docs/operations.md.
Names permissions_of(std::string_view primitive) {
  for (const auto& line : read_lines(test::source_path("docs/operations.md")))
    if (const auto cells = cells_of(line);
        cells.size() == 2 && cells.front().find(primitive) != std::string::npos)
      return quoted_words(cells[1]);
  ADD_FAILURE() << "docs/operations.md has no row of " << primitive;
  return {};
}

TEST(DocsFacts, PermissionsCoverTheCommandsThatAreSent) {
  const auto connection = permissions_of("each connection");
  auto of_locks = permissions_of("each lock, semaphore and latch");
  of_locks.insert(connection.begin(), connection.end());
  struct Room {
    std::string_view folder;
    std::string_view row;
  };
  static constexpr Room rooms[] = {
      {"lock/hold", "each lock, semaphore and latch"},
      {"lock/wait", "each lock, semaphore and latch"},
      {"lock/mutex", "`Mutex`"},
      {"lock/multi", "`MultiLock`"},
      {"lock/quorum", "`QuorumLock`"},
      {"lock/fair", "`FairMutex`"},
      {"lock/shared", "`SharedMutex`"},
      {"lock/semaphore", "`Semaphore`"},
      {"lock/latch", "`Latch`"},
      {"lock/limiter", "`RateLimiter`"},
      {"lock/fencing", "`Fence`"},
      {"lock/watch", "`LockWatch`"},
      {"number", "`Series`"},
      {"id", "`IdWorker`"},
      {"bloom", "`SharedBloomFilter`"},
      {"cache", "`CacheGuard`"},
      {"room", "`WaitingRoom`"},
      {"sale", "`Sale`"},
  };
  for (const auto& [folder, row] : rooms) {
    auto allowed = permissions_of(row);
    allowed.insert(connection.begin(), connection.end());
    if (folder.starts_with("lock/")) allowed.insert(of_locks.begin(), of_locks.end());
    EXPECT_EQ(difference(commands_of(folder), allowed), Names{})
        << "missing in the row of " << row << " in docs/operations.md";
  }
}

TEST(DocsFacts, AdministrativeCommandsOfTheProxyAreNamed) {
  static const std::regex row{R"re(\n    \{"([A-Z ]+)",)re"};
  const auto commands = found_in(read_text("src/proxy/process/admin.cpp"), row);
  EXPECT_GT(commands.size(), 10U);
  EXPECT_EQ(difference(commands, quoted_words(read_text("docs/proxy.md"))), Names{});
}

// --- the program and its classes ---

TEST(DocsFacts, ExitCodesThatAreNamedExist) {
  Names known;
  for (const auto& line : read_lines(test::source_path("docs/command_line.md")))
    if (const auto cells = cells_of(line); !cells.empty()) {
      static const std::regex number{R"(^`?(\d+)`?$)"};
      known.merge(found_in(cells.front(), number));
    }
  EXPECT_TRUE(known.contains("75")) << "docs/command_line.md has no table of exit codes";
  static const std::regex named{R"([Ee]xit (?:code )?(\d+))"};
  for (const auto& document : documents())
    for (const auto& line : read_lines(document))
      EXPECT_EQ(difference(found_in(line, named), known), Names{}) << document << ": " << line;
}

TEST(DocsFacts, OptionsOfCommandsThatAreNamedExist) {
  static const std::regex command{R"((?:sluice|\./run) [a-z]+[^`#]*)"};
  static const std::regex option{R"( (--[a-z][a-z-]+))"};
  const auto known =
      found_in(read_text("docs/command_line.md") + read_text("docs/serve_commands.md"),
               std::regex{R"((--[a-z][a-z-]+))"});
  for (const auto& document : documents())
    for (const auto& line : read_lines(document))
      for (std::sregex_iterator it{line.begin(), line.end(), command}, end; it != end; ++it) {
        auto words = it->str();
        if (words.contains(" proxy")) continue;  // a program of its own
        if (const auto other = words.find(" -- "); other != std::string::npos) words.resize(other);
        EXPECT_EQ(difference(found_in(words, option), known), Names{}) << document << ": " << line;
      }
}

TEST(DocsFacts, OptionsOfClassesThatAreNamedExist) {
  Names identifiers;
  for (const auto& entry : fs::directory_iterator{test::source_path("include/sluice")})
    for (const auto& line : read_lines(entry.path())) identifiers.merge(identifiers_of(line));
  for (const auto& document : documents()) {
    bool inside = false;  // a table of options
    for (const auto& line : read_lines(document)) {
      const auto cells = cells_of(line);
      inside = !cells.empty() && (inside || cells.front() == "option");
      if (!inside || !cells.front().starts_with('`')) continue;
      for (const auto& name : quoted_words(cells.front()))
        EXPECT_TRUE(identifiers.contains(name.substr(name.rfind('.') + 1)))
            << document << " names " << name;
    }
  }
}

TEST(DocsFacts, PathsThatAreNamedExist) {
  static const std::regex path{
      R"(`((?:src|include|tests|cmake|scripts|examples|bench|docs)/[\w/.-]+)`)"};
  for (const auto& document : documents()) {
    if (document.string().contains("/decisions/")) continue;  // they speak of their time
    for (const auto& line : read_lines(document))
      for (std::sregex_iterator it{line.begin(), line.end(), path}, end; it != end; ++it)
        EXPECT_TRUE(fs::exists(test::source_path((*it)[1].str())))
            << document << " names " << (*it)[1];
  }
}

TEST(DocsFacts, TheIndexNamesEachPage) {
  const auto index = read_text("docs/README.md");
  for (const auto& entry : fs::directory_iterator{test::source_path("docs")}) {
    const auto name = entry.path().filename().string();
    if (!name.ends_with(".md") || name == "README.md") continue;
    EXPECT_TRUE(index.contains("](" + name + ")")) << "docs/README.md does not name " << name;
  }
}

TEST(DocsFacts, TheGlossaryIsShort) {
  std::size_t words = 0;
  bool inside = false;
  for (const auto& line : read_lines(test::source_path("docs/architecture.md"))) {
    if (line.starts_with("## ")) inside = line == "## Glossary";
    if (inside && cells_of(line).size() >= 2) ++words;
  }
  EXPECT_GT(words, 12U);
  EXPECT_LE(words, 42U);  // two rows are the head of the table
}

// The rules themselves.
TEST(DocsFactsRules, ARowIsCutIntoItsCells) {
  EXPECT_EQ(cells_of("| a | `b` c |"), (std::vector<std::string>{"a", "`b` c"}));
  EXPECT_TRUE(cells_of("no row").empty());
  EXPECT_EQ(quoted_words("`A` and `B C`, `"), (Names{"A", "B C"}));
}

}  // namespace
}  // namespace sluice::docs
