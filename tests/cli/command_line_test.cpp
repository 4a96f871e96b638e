/// A table of commands: what is understood, what is refused and how, and what comes from the table.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_line/command.hpp"
#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

struct Args {
  std::string name;
  std::int64_t count = 1;
  double share = 0.5;
  bool force = false;
  std::chrono::milliseconds wait = std::chrono::seconds{90};
  Words command;
  std::string ran;
  std::string store;
};

/// A program with a command that runs another one, one with verbs behind its name, and one that
/// needs an option.
Program program_of(Args& args) {
  const auto says = [&args](const char* what) {
    return [&args, what] {
      args.ran = what;
      return 7;
    };
  };
  return {{.name = "shop",
           .summary = "Sell things",
           .options = {{"--store", "URL", "Where", into(args.store)}},
           .commands =
               {{.name = "run",
                 .summary = "Run a command",
                 .arguments = {{"NAME", "Its name", into(args.name)},
                               {"CMD", "The command", into(args.command), false}},
                 .options = {{"-n, --count", "N", "How many", into(args.count, 1, 9)},
                             {"--share", "PART", "How much", into(args.share, 0, 1)},
                             {"-f, --force", "", "All the same", into(args.force)},
                             {"-w, --wait", "TIME", "How long", into(args.wait)}},
                 .action = says("run")},
                {.name = "gate",
                 .summary = "Wait at a gate",
                 .arguments = {{"NAME", "Its name", into(args.name)},
                               {"CMD", "Then", into(args.command), false, true}},
                 .commands = {{.name = "set",
                               .summary = "Set it",
                               .arguments = {{"N", "To what", into(args.count, 0, 9)}},
                               .action = says("gate set")},
                              {.name = "show", .summary = "Show it", .action = says("gate show")}},
                 .action = says("gate")},
                {.name = "buy",
                 .summary = "Buy",
                 .options = {{"--buyer", "NAME", "Who", into(args.name), true}},
                 .action = says("buy")},
                {.name = "check",
                 .summary = "Check",
                 .options = {{"-c, --conf", "FILE", "What", into(args.name)}},
                 .action = says("check"),
                 .hidden = true},
                {.name = "explode",
                 .summary = "Throw",
                 .arguments = {{"NAME", "Of what", into(args.name), false}},
                 .action = [&args]() -> int {
                   throw Error{Errc::in_use, args.name == "x" ? "'x' is busy" : "busy"};
                 },
                 .hidden = true}}},
          "1.2"};
}

class CommandLine : public testing::Test {
 protected:
  int run(Words words) {
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    args_ = {};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_program(program_of(args_), pointers);
    out_ = testing::internal::GetCapturedStdout();
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  /// The one line that is said of words that are refused.
  std::string refusal(Words words) {
    EXPECT_EQ(run(std::move(words)), exit_usage) << said_;
    EXPECT_EQ(args_.ran, "");
    EXPECT_TRUE(said_.starts_with("sluice: ")) << said_;
    EXPECT_EQ(std::ranges::count(said_, '\n'), 1) << said_;
    return said_;
  }
  bool helps(const std::string& text) const { return out_.find(text) != std::string::npos; }

  Args args_;
  std::string out_;
  std::string said_;
};

TEST_F(CommandLine, OptionsAreUnderstoodInEveryForm) {
  EXPECT_EQ(run({"run", "x", "-n", "3", "--share=0.25", "-f", "--wait", "250ms", "--", "ls", "-l"}),
            7);
  EXPECT_EQ(args_.name, "x");
  EXPECT_EQ(args_.count, 3);
  EXPECT_EQ(args_.share, 0.25);
  EXPECT_TRUE(args_.force);
  EXPECT_EQ(args_.wait, std::chrono::milliseconds{250});
  EXPECT_EQ(args_.command, (Words{"ls", "-l"}));
  EXPECT_EQ(run({"run", "-fn4", "-w5", "x", "ls", "there"}), 7);
  EXPECT_EQ(args_.count, 4);
  EXPECT_EQ(args_.wait, std::chrono::seconds{5}) << "a bare number is seconds";
  EXPECT_EQ(args_.command, (Words{"ls", "there"}));
}

TEST_F(CommandLine, OptionsOfTheProgramStandAnywhere) {
  EXPECT_EQ(run({"--store", "a", "run", "x"}), 7);
  EXPECT_EQ(args_.store, "a");
  EXPECT_EQ(run({"run", "--store", "b", "x"}), 7);
  EXPECT_EQ(args_.store, "b");
  EXPECT_EQ(run({"gate", "x", "set", "5", "--store", "c"}), 7);
  EXPECT_EQ(args_.store, "c");
}

TEST_F(CommandLine, VerbsStandBehindTheName) {
  EXPECT_EQ(run({"gate", "x"}), 7);
  EXPECT_EQ(args_.ran, "gate");
  EXPECT_EQ(run({"gate", "x", "set", "5"}), 7);
  EXPECT_EQ(args_.ran, "gate set");
  EXPECT_EQ(args_.count, 5);
  EXPECT_EQ(run({"gate", "set", "show"}), 7);
  EXPECT_EQ(args_.ran, "gate show");
  EXPECT_EQ(args_.name, "set");
  EXPECT_EQ(run({"gate", "x", "--", "set", "5"}), 7);
  EXPECT_EQ(args_.ran, "gate");
  EXPECT_EQ(args_.command, (Words{"set", "5"}));
}

TEST_F(CommandLine, WhatIsMissingIsNamed) {
  EXPECT_EQ(refusal({}), "sluice: a command is missing (see 'shop --help')\n");
  EXPECT_EQ(refusal({"run"}), "sluice: NAME is missing (see 'shop run --help')\n");
  EXPECT_EQ(refusal({"run", "x", "-n"}), "sluice: '-n' needs a value (see 'shop run --help')\n");
  EXPECT_EQ(refusal({"buy"}), "sluice: --buyer is missing (see 'shop buy --help')\n");
  EXPECT_EQ(refusal({"gate", "set", "3"}),
            "sluice: NAME is missing before 'set' (see 'shop gate --help')\n");
}

TEST_F(CommandLine, WhatIsUnknownIsNamedWithTheNearest) {
  EXPECT_EQ(refusal({"gato"}),
            "sluice: unknown command 'gato'; did you mean 'gate'? (see 'shop --help')\n");
  EXPECT_EQ(refusal({"frobnicate"}), "sluice: unknown command 'frobnicate' (see 'shop --help')\n");
  EXPECT_EQ(refusal({"buy", "--bayer", "x"}),
            "sluice: unknown option '--bayer' (see 'shop buy --help')\n");
  EXPECT_EQ(refusal({"buy", "-q"}), "sluice: unknown option '-q' (see 'shop buy --help')\n");
  EXPECT_EQ(refusal({"run", "-f", "--force=x", "x"}),
            "sluice: '--force' takes no value (see 'shop run --help')\n");
  EXPECT_EQ(refusal({"buy", "x"}), "sluice: 'x' is one word too many (see 'shop buy --help')\n");
  EXPECT_EQ(refusal({"check", "a.yml"}),
            "sluice: 'a.yml' is one word too many; did you mean '-c a.yml'? (see 'shop check "
            "--help')\n");
}

TEST_F(CommandLine, ValuesThatMakeNoSenseAreNamed) {
  EXPECT_EQ(refusal({"run", "x", "--count", "10"}),
            "sluice: --count: '10' is no integer from 1 to 9 (see 'shop run --help')\n");
  for (const char* const count : {"", "x", "1x", "1.5", "99999999999999999999", "-1"})
    EXPECT_NE(refusal({"run", "x", "--count", count}).find("is no integer"), std::string::npos);
  for (const char* const share : {"", "x", "2", "nan", "0.5x"})
    EXPECT_NE(refusal({"run", "x", "--share", share}).find("is no number"), std::string::npos);
  EXPECT_NE(refusal({"run", "x", "--wait", "soon"}).find("'soon' is no time"), std::string::npos);
}

TEST_F(CommandLine, ACommandWithOptionsNeedsDashes) {
  for (const Words& words : {Words{"run", "x", "ls", "-l"}, Words{"run", "x", "ls", "--wait", "1"}})
    EXPECT_NE(refusal(words).find("write -- before"), std::string::npos) << said_;
  EXPECT_NE(refusal({"run", "-z", "x", "ls"}).find("write -- before"), std::string::npos);
  // The "--" of `rm -- -rf` is the command's own: it is neither taken away nor guessed at.
  EXPECT_NE(refusal({"run", "x", "rm", "--", "-rf"}).find("write -- before"), std::string::npos);
  EXPECT_EQ(run({"run", "x", "--", "rm", "--", "-rf"}), 7);
  EXPECT_EQ(args_.command, (Words{"rm", "--", "-rf"}));
}

TEST_F(CommandLine, AFailureIsHeadedByItsCommand) {
  EXPECT_EQ(run({"explode", "y"}), exit_in_use);
  EXPECT_EQ(said_, "sluice: explode 'y': busy\n");
  EXPECT_EQ(run({"explode"}), exit_in_use);
  EXPECT_EQ(said_, "sluice: explode: busy\n");
  EXPECT_EQ(run({"explode", ""}), exit_in_use);
  EXPECT_EQ(said_, "sluice: explode '': busy\n");
  EXPECT_EQ(run({"explode", "x"}), exit_in_use);
  EXPECT_EQ(said_, "sluice: 'x' is busy\n") << "it says so itself";
}

TEST_F(CommandLine, HelpIsShort) {
  EXPECT_EQ(run({"--help"}), exit_ok);
  for (const char* const word : {"run", "gate", "help", "completion", "--store", "75"})
    EXPECT_TRUE(helps(word)) << word << '\n' << out_;
  EXPECT_FALSE(helps("explode")) << "hidden";
  EXPECT_EQ(run({"run", "--help"}), exit_ok);
  EXPECT_TRUE(out_.starts_with("Usage: shop run [OPTIONS] NAME [CMD...]\n")) << out_;
  EXPECT_TRUE(helps("(default 90s)")) << out_;
  EXPECT_FALSE(helps("75")) << out_;
  const std::string by_option = out_;
  EXPECT_EQ(run({"help", "run"}), exit_ok);
  EXPECT_EQ(out_, by_option);
  EXPECT_EQ(run({"help", "gate", "set"}), exit_ok);
  EXPECT_TRUE(out_.starts_with("Usage: shop gate NAME set N\n")) << out_;
  EXPECT_EQ(run({"gate", "--help"}), exit_ok);
  EXPECT_TRUE(out_.starts_with("Usage: shop gate NAME [COMMAND] [-- CMD...]\n")) << out_;
  EXPECT_EQ(run({"help", "exit-codes"}), exit_ok);
  EXPECT_TRUE(helps("75")) << out_;
  EXPECT_EQ(run({"--version"}), exit_ok);
  EXPECT_EQ(out_, "sluice 1.2\n");
  EXPECT_EQ(run({"help", "nothing"}), exit_usage);
}

TEST_F(CommandLine, AManPageHasEveryOption) {
  Program program = program_of(args_);
  const std::string page = man_page(program, std::vector<std::string>{"run"});
  EXPECT_TRUE(page.starts_with(".TH SHOP\\-RUN 1 ")) << page;
  for (const char* const text : {".SH NAME\n", ".B \\-n, \\-\\-count N\n", ".B \\-\\-store URL\n"})
    EXPECT_NE(page.find(text), std::string::npos) << text << '\n' << page;
  program.root.commands[0].details = ".a line that looks like a macro\\";
  EXPECT_NE(man_page(program, std::vector<std::string>{"run"})
                .find("\n\\&.a line that looks like a macro\\e\n"),
            std::string::npos);
  EXPECT_NE(
      man_page(program, std::vector<std::string>{"gate"}).find(".SS \"shop gate NAME set N\""),
      std::string::npos);
}

TEST_F(CommandLine, CompletionKnowsCommandsAndOptions) {
  const Program program = program_of(args_);
  const auto words = [&](Words line) {
    Words found = completions(program.root, line);
    for (auto& one : found) one.erase(one.find('\t'));
    return found;
  };
  EXPECT_EQ(words({""}), (Words{"run", "gate", "buy"}));
  EXPECT_EQ(words({"ga"}), (Words{"gate"}));
  EXPECT_EQ(words({"--store", "x", "b"}), (Words{"buy"}));
  EXPECT_EQ(words({"run", "--"}), (Words{"--store", "--count", "--share", "--force", "--wait"}));
  EXPECT_EQ(words({"gate", "x", "s"}), (Words{"set", "show"}));
  EXPECT_EQ(words({"run", "--wait", ""}), Words{}) << "a value is the shell's business";
  EXPECT_EQ(words({"run", "x", "--", "-"}), Words{}) << "another program's words";
  EXPECT_THROW(completion_script(program.root, "csh"), Error);
}

TEST(ExitCodes, EachKindOfErrorHasARowInTheTable) {
  for (int code = 1; code <= static_cast<int>(Errc::unsynced); ++code) {
    const ExitCode exit = exit_code_of(static_cast<Errc>(code));
    EXPECT_EQ(std::ranges::count(exit_code_rows(), exit, &ExitCodeRow::code), 1) << code;
    EXPECT_NE(exit, exit_ok) << code;
  }
}

}  // namespace
}  // namespace sluice::cli
