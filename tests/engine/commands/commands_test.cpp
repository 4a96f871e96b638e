// Every row of every table on the engine: its reply, and what it logs.
#include <gtest/gtest.h>

#include <charconv>

#include "engine/commands/command_cases.hpp"
#include "engine/engine_session.hpp"

namespace sluice::engine {
namespace {

class Commands : public testing::TestWithParam<CommandTable> {};

TEST_P(Commands, ReplyAndLog) {
  EngineSession session;
  for (const auto& row : GetParam().cases) {
    if (row.command.starts_with('@')) {
      std::int64_t ms = 0;
      std::from_chars(row.command.data() + 1, row.command.data() + row.command.size(), ms);
      session.now_us += ms * 1000;
      continue;
    }
    const auto words = words_of(row.command);
    EXPECT_EQ(to_string(session.run(words)), row.reply) << row.command;
    EXPECT_EQ(session.effects_text(), row.effects == "=" ? text_of(words) : row.effects)
        << row.command;
  }
}

std::vector<CommandTable> every_table() {
  std::vector<CommandTable> tables;
  for (const auto family : all_tables)
    tables.insert(tables.end(), family().begin(), family().end());
  return tables;
}

INSTANTIATE_TEST_SUITE_P(Tables, Commands, testing::ValuesIn(every_table()),
                         [](const auto& instance) { return std::string{instance.param.name}; });

}  // namespace
}  // namespace sluice::engine
