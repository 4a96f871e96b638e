/// What a new user stumbled over, each by its row.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "cli/program.hpp"
#include "server/served.hpp"
#include "sluice/order_store.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/silent_port.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;
using test::Ran;
using test::read_file;
using CommandWords = std::vector<std::string>;

class Frictions : public test::Program {
 protected:
  /// Until it is there and has a whole line in it.
  std::string wait_for_line(const std::string& file) {
    wait_until([&](PlainClient&) { return read_file(folder_ / file).ends_with('\n'); });
    return read_file(folder_ / file);
  }
  std::string dead_url() const { return "redis://127.0.0.1:" + std::to_string(test::free_port()); }

  /// A child that nobody waits for any more may stay as a zombie.
  static bool has_ended(const std::string& pid) {
    const auto status = read_file("/proc/" + pid + "/stat");
    return status.empty() || status.find(") Z") != std::string::npos;
  }
};

TEST_F(Frictions, U04_TheCommandDiesWithItsWrapper) {
  auto holder = start_on_redis(
      {"lock", "deploy", "--", "sh", "-c", "echo $$ > pid; exec sleep 600"}, "holder");
  std::string pid = wait_for_line("pid");
  pid.pop_back();
  ASSERT_FALSE(has_ended(pid));
  holder.kill();
  wait_until([&](PlainClient&) { return has_ended(pid); });
}

TEST_F(Frictions, U04_UserSignalsArePassedOn) {
  for (const auto& [name, number] : {std::pair{"USR1", SIGUSR1}, std::pair{"USR2", SIGUSR2}}) {
    auto holder = start_on_redis({"lock", "deploy", "--", "sh", "-c",
                                  std::string{"trap 'exit 11' "} + name + "; echo up > " + name +
                                      "; while :; do sleep 0.05; done"},
                                 "holder");
    wait_for_line(name);
    holder.signal(number);
    EXPECT_EQ(holder.wait_for(20s), 11) << name;
  }
}

TEST_F(Frictions, U04_WhatTheCallerIgnoresDoesNotChangeHowItEnds) {
  const auto line = "exec env --ignore-signal=CHLD,HUP " + test::built_path("sluice") +
                    " --store " + server_.url() + " lock deploy -- ";
  EXPECT_EQ((test::Process{{"sh", "-c", line + "sh -c 'kill -HUP $PPID; exit 7'"}}.wait()), 7);
  auto holder = start_on_redis({"lock", "deploy", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  test::Process waiter{{"sh", "-c", line + "sh -c 'exit 7'"}};
  wait_for_key("sluice_lock_queue:{deploy}");
  waiter.signal(SIGHUP);
  holder.terminate();
  EXPECT_EQ(waiter.wait_for(20s), 7) << "nohup";
}

TEST_F(Frictions, U05_AFailureSaysOfWhatItIs) {
  PlainClient side{server_.port()};
  side.command({"SET", "{MT}:s", "x"});
  const Ran ran = run_on_redis({"number", "MT"});
  EXPECT_EQ(ran.status, 65) << ran.output;
  EXPECT_TRUE(ran.says("MT'")) << ran.output;
  const Ran lock = run({"--store", dead_url(), "lock", "deploy", "-n", "--", "true"});
  EXPECT_EQ(lock.status, 69) << lock.output;
  EXPECT_TRUE(lock.says("lock 'deploy': ")) << lock.output;
  EXPECT_FALSE(lock.says("was not released")) << lock.output;
}

TEST_F(Frictions, U05_ANameThatIsSomethingElseIsRefusedInOneLine) {
  PlainClient side{server_.port()};
  side.command({"SET", "text", "x"});
  side.command({"HSET", "user:42", "name", "Ann"});
  for (const CommandWords& verb :
       {CommandWords{"lock"}, CommandWords{"lock", "--fair"}, CommandWords{"lock", "--shared"},
        CommandWords{"semaphore", "--permits", "2"}, CommandWords{"semaphore"}})
    for (const auto* const name : {"text", "user:42"}) {
      CommandWords words = verb;
      words.insert(words.end(), {name, "--", "true"});
      const Ran ran = run_on_redis(words);
      EXPECT_EQ(ran.status, 65) << ran.output;
      EXPECT_TRUE(ran.says("WRONGTYPE the key of this name is not a ")) << ran.output;
      EXPECT_TRUE(ran.output.ends_with("; nothing was written\n")) << ran.output;
      EXPECT_FALSE(ran.says("was not released")) << ran.output;
    }
}

TEST_F(Frictions, U06_WaitCoversConnecting) {
  server_.kill();
  for (const CommandWords& words :
       {CommandWords{"lock", "deploy", "--wait", "20s", "--", "echo", "in"},
        CommandWords{"semaphore", "desks", "--permits", "1", "-w", "20s", "--", "echo", "in"},
        CommandWords{"latch", "import", "--wait", "20s", "--", "echo", "in"}}) {
    auto waiter = start_on_redis(words, words[0]);
    while (read_file(folder_ / words[0]).find("trying again") == std::string::npos)
      ASSERT_EQ(waiter.wait_for(10ms), std::nullopt) << read_file(folder_ / words[0]);
    server_.start();
    EXPECT_EQ(waiter.wait_for(20s), 0) << read_file(folder_ / words[0]);
    EXPECT_TRUE(read_file(folder_ / words[0]).ends_with("in\n"));
    server_.kill();
  }
  server_.start();
}

TEST_F(Frictions, U06_AWaitForAStoreThatNeverComesEnds) {
  const CommandWords line{"--store", dead_url(), "lock", "deploy", "--wait", "300ms", "--", "true"};
  Ran ran = run(line);
  // On a slow machine the wait may be over before the first attempt has failed.
  for (int left = 5; left > 0 && !ran.says("trying again"); --left) ran = run(line);
  EXPECT_EQ(ran.status, 69) << ran.output;
  EXPECT_TRUE(ran.says("trying again for 300ms")) << ran.output;
  auto waiter = start({"--store", dead_url(), "lock", "deploy", "--", "true"}, "waiter");
  wait_for_line("waiter");
  waiter.signal(SIGINT);
  EXPECT_EQ(waiter.wait_for(20s), 128 + SIGINT) << "a signal ends the wait";
}

TEST_F(Frictions, U06_WaitBoundsConnectingToAHostThatIsSilent) {
  const test::SilentPort silent;
  for (const CommandWords& words :
       {CommandWords{"lock", "deploy"}, CommandWords{"semaphore", "desks", "--permits", "1"},
        CommandWords{"latch", "x"},
        CommandWords{"lock", "x", "--quorum",
                     silent.url() + ',' + silent.url() + ',' + silent.url()}}) {
    CommandWords line = words;
    line.insert(line.end(), {"--wait", "600ms", "--", "true"});
    line.insert(line.begin(), {"--store", silent.url() + "?connect_timeout=1d"});
    const Ran ran = run(line);
    EXPECT_TRUE(ran.status == 79 || ran.status == 69) << ran.status << ran.output;
    EXPECT_TRUE(ran.says("not connected within ")) << ran.output;
  }
}

TEST_F(Frictions, U06_ASilentNodeDoesNotKeepAMajorityOut) {
  const test::SilentPort silent;
  const test::RedisServer second;
  const std::string urls =
      silent.url() + "?connect_timeout=1d," + server_.url() + ',' + second.url();
  const CommandWords line{"lock", "deploy", "--wait", "4s", "--quorum", urls, "--", "echo", "in"};
  Ran ran = run(line);
  // The others have half a second to answer, which is little for a slow machine.
  for (int left = 5; left > 0 && ran.status != 0; --left) ran = run(line);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(ran.says("going on without it")) << ran.output;
}

TEST_F(Frictions, U06_WaitCoversAFolderInUse) {
  const CommandWords on_folder{"--store", "embedded:" + (folder_ / "data").string()};
  const auto lock = [&](CommandWords words) {
    words.insert(words.begin(), on_folder.begin(), on_folder.end());
    return words;
  };
  auto holder =
      start(lock({"lock", "deploy", "--", "sh", "-c", "echo > in; exec sleep 60"}), "one");
  wait_for_line("in");
  for (const char* const wait : {"0", "50ms"}) {
    const Ran busy = run(lock({"lock", "deploy", "--wait", wait, "--", "true"}));
    EXPECT_EQ(busy.status, 73) << busy.output;
    EXPECT_TRUE(busy.says("is in use by process")) << busy.output;
  }
  auto waiter = start(lock({"lock", "deploy", "--wait", "1h", "--", "echo", "entered"}), "two");
  EXPECT_NE(wait_for_line("two").find("trying again for 1h"), std::string::npos);
  EXPECT_TRUE(waiter.running());
  holder.terminate();
  EXPECT_EQ(waiter.wait_for(20s), 0);
  EXPECT_TRUE(read_file(folder_ / "two").ends_with("entered\n"));
}

TEST_F(Frictions, U07_TheShortOptionsAreThoseOfFlock) {
  auto holder = start_on_redis({"lock", "deploy", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  EXPECT_EQ(run_on_redis({"lock", "-n", "deploy", "true"}).status, 75);
  EXPECT_EQ(run_on_redis({"lock", "-w", "0.05", "deploy", "true"}).status, 75);
  holder.terminate();
  EXPECT_EQ(holder.wait_for(20s), 128 + SIGTERM);
  EXPECT_EQ(run_on_redis({"lock", "deploy", "-c", "echo one; exit 9"}).status, 9);
  EXPECT_EQ(run_on_redis({"lock", "deploy", "-c", "true", "--", "false"}).status, 64);
}

TEST_F(Frictions, U07_AnOptionOfTheCommandIsRefusedWithAHint) {
  for (const CommandWords& words :
       {CommandWords{"lock", "j", "ls", "-l"}, CommandWords{"lock", "-l", "j", "ls"}}) {
    const Ran ran = run_on_redis(words);
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_TRUE(ran.says("write -- before")) << ran.output;
  }
}

TEST_F(Frictions, U08_AWaiterSaysForWhatItWaits) {
  auto holder =
      start_on_redis({"lock", "deploy", "--label", "anna", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  const Ran lock = run_on_redis({"lock", "-v", "deploy", "--wait", "2s", "--", "true"});
  EXPECT_EQ(lock.status, 75);
  EXPECT_TRUE(lock.says("waiting for lock 'deploy': held by anna@")) << lock.output;
  const Ran semaphore = run_on_redis({"semaphore", "-v", "unset", "--wait", "2s", "--", "true"});
  EXPECT_TRUE(semaphore.says("say it with --permits")) << semaphore.output;
  const Ran quiet = run_on_redis({"lock", "deploy", "--wait", "2s", "--", "true"});
  EXPECT_FALSE(quiet.says("waiting for")) << quiet.output;
}

TEST_F(Frictions, U09_AnotherNumberOfPermitsIsAMismatch) {
  EXPECT_EQ(run_on_redis({"semaphore", "desks", "--permits", "2", "--", "true"}).status, 0);
  const Ran other = run_on_redis({"semaphore", "desks", "--permits", "3", "--", "true"});
  EXPECT_EQ(other.status, 78) << other.output;
}

TEST_F(Frictions, U09_MorePermitsThanThereAreAreNotWaitedFor) {
  const Ran ran =
      run_on_redis({"semaphore", "desks", "--permits", "2", "--count", "3", "--", "true"});
  EXPECT_EQ(ran.status, 64) << ran.output;
  EXPECT_TRUE(ran.says("--count 3 is more than the --permits 2 there are")) << ran.output;
}

TEST_F(Frictions, U10_ALatchThatWasNeverSetIsTold) {
  const Ran shown = run_on_redis({"latch", "import", "show"});
  EXPECT_TRUE(shown.says("latch 'import' is not set")) << shown.output;
  const Ran waited = run_on_redis({"latch", "import", "--", "echo", "in"});
  EXPECT_EQ(waited.status, 0);
  EXPECT_TRUE(waited.says("latch 'import' is not set")) << waited.output;
  EXPECT_TRUE(waited.says("in\n")) << waited.output;
}

TEST_F(Frictions, CO12_AReportToALatchThatWasNeverSetIsTold) {
  const Ran mistyped = run_on_redis({"latch", "inport", "count-down"});
  EXPECT_EQ(mistyped.status, 0) << mistyped.output;
  EXPECT_TRUE(mistyped.says("latch 'inport' is not set")) << mistyped.output;
  const Ran named = run_on_redis({"--json", "latch", "inport", "count-down", "--part", "one"});
  EXPECT_TRUE(named.says("\"set\":false")) << named.output;
  run_on_redis({"latch", "import", "set", "1"});
  const Ran last = run_on_redis({"latch", "import", "count-down"});
  EXPECT_TRUE(last.says("latch 'import' is open")) << last.output;
  const Ran again = run_on_redis({"latch", "import", "count-down"});
  EXPECT_TRUE(again.says("latch 'import' is open")) << again.output;
}

TEST_F(Frictions, U10_AVerbOfALatchIsNeverRunAsACommand) {
  const Ran forgotten = run_on_redis({"latch", "set", "3"});
  EXPECT_EQ(forgotten.status, 64) << forgotten.output;
  EXPECT_TRUE(forgotten.says("NAME is missing")) << forgotten.output;
  const Ran mistyped = run_on_redis({"latch", "import", "sett", "3"});
  EXPECT_EQ(mistyped.status, 64) << mistyped.output;
  EXPECT_TRUE(mistyped.says("did you mean 'set'?")) << mistyped.output;
}

TEST_F(Frictions, U11_AnIdThatIsNoneGetsOneClearLine) {
  for (const char* const id : {"99999999999999999999", "abc", "-5"}) {
    const Ran ran = run({"id", "--explain", id});
    EXPECT_EQ(ran.status, 64) << ran.output;
    EXPECT_TRUE(ran.says(std::string{"'"} + id + "' is no integer")) << ran.output;
    EXPECT_LT(ran.output.size(), 120U) << ran.output;
  }
}

TEST_F(Frictions, U12_ATypeOfOrderNumbersHasNoDefault) {
  const Ran ran = run_on_redis({"sale", "create", "wine", "--stock", "10"});
  EXPECT_EQ(ran.status, 64) << ran.output;
  EXPECT_TRUE(ran.says("--type is missing")) << ran.output;
}

TEST_F(Frictions, U13_EachPurchaseIsANewWishUnlessARequestIsGiven) {
  ASSERT_EQ(
      run_on_redis({"sale", "create", "wine", "--stock", "100", "--type", "WI", "--limit", "0"})
          .status,
      0);
  const auto buy = [&](const char* units, CommandWords more = {}) {
    CommandWords words{"--json", "sale", "buy", "wine", "--buyer", "ann", "--units", units};
    words.insert(words.end(), more.begin(), more.end());
    return run_on_redis(words);
  };
  const auto first = buy("8").json();
  const auto second = buy("2").json();
  EXPECT_EQ(second.at("outcome"), "admitted");
  EXPECT_EQ(second.at("order").at("units"), 2);
  const std::string request = first.at("request");
  EXPECT_NE(request, second.at("request").get<std::string>());
  EXPECT_EQ(buy("8", {"--request", request}).json().at("order").at("units"), 8);
  const Ran other = buy("3", {"--request", request});
  EXPECT_TRUE(other.says("bought 8 unit(s) the first time")) << other.output;
}

TEST_F(Frictions, U14_AnUnknownCommandIsNamedWithTheNearest) {
  const Ran unknown = run({"frobnicate"});
  EXPECT_EQ(unknown.status, 64);
  EXPECT_TRUE(unknown.says("unknown command 'frobnicate'")) << unknown.output;
  EXPECT_TRUE(run({"lokc"}).says("did you mean 'lock'?"));
  EXPECT_TRUE(run({"sale", "sell"}).says("unknown command 'sell'"));
  EXPECT_EQ(run({"help"}).status, 0);
  EXPECT_EQ(run({"help", "sale", "buy"}).status, 0);
}

TEST_F(Frictions, U15_HelpIsShortAndShellsAreServed) {
  EXPECT_FALSE(run({"lock", "--help"}).says("disk or memory is full"));
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    const Ran script = run({"completion", shell});
    EXPECT_EQ(script.status, 0);
    EXPECT_TRUE(script.says("sluice __complete")) << script.output;
  }
  EXPECT_TRUE(run({"__complete", "semaphore", "--per"}).says("--permits\t"));
  EXPECT_TRUE(run({"help", "--man", "lock"}).says(".TH SLUICE\\-LOCK 1"));
  EXPECT_EQ(run({"__pages", (folder_ / "pages").string()}).status, 0);
  for (const char* const page :
       {"man/man1/sluice.1", "man/man1/sluice-lock.1", "bash-completion/completions/sluice",
        "zsh/site-functions/_sluice", "fish/vendor_completions.d/sluice.fish"})
    EXPECT_GT(read_file(folder_ / "pages" / page).size(), 50U) << page;
  const std::string bash = (folder_ / "pages/bash-completion/completions/sluice").string();
  test::Process completing{
      {"bash", "-c",
       ". " + bash + "; PATH=" + test::built_path() +
           ":$PATH; COMP_WORDS=(sluice sem); COMP_CWORD=1; _sluice; [ $COMPREPLY = semaphore ]"}};
  EXPECT_EQ(completing.wait(), 0);
}

/// `check` runs in a shell that may be missing on this machine; $1: the folder of the scripts.
void completes_in(const std::string& shell, const CommandWords& options, const std::string& check) {
  if (test::Process{{"sh", "-c", "command -v " + shell + " >/dev/null"}}.wait() != 0)
    GTEST_SKIP() << shell << " is not installed";
  const test::TempDir folder;
  test::Process{{test::built_path("sluice"), "__pages", folder.path()}}.wait();
  CommandWords words{"env", fmt::format("PATH={}:{}", test::built_path(), std::getenv("PATH")),
                     shell};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-c", fmt::format(fmt::runtime(check), folder.path().string())});
  EXPECT_EQ(test::Process{words}.wait(), 0);
}

TEST_F(Frictions, U15_ZshCompletes) {
  completes_in("zsh", {"-f"},
               "fpath=({}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; "
               "_describe() {{ print -rl -- ${{(P)2}}; }}; words=(sluice sem); CURRENT=2; "
               "[[ $_comps[sluice] == _sluice && $(_sluice) == semaphore:* ]]");
}

TEST_F(Frictions, U15_FishCompletes) {
  completes_in("fish", {"--no-config"},
               "source {}/fish/vendor_completions.d/sluice.fish; "
               "complete -C 'sluice sem' | grep -q ^semaphore");
}

TEST_F(Frictions, U15_TheReferenceOfTheCommandLineIsCurrent) {
  const std::string page = (folder_ / "page").string();
  const std::string script = test::source_path("scripts/command_line_page");
  test::Process{{script, test::built_path()}, {.output = page}}.wait();
  EXPECT_EQ(read_file(test::source_path("docs/command_line.md")), read_file(page))
      << "write it anew: scripts/command_line_page build/release > docs/command_line.md";
}

TEST_F(Frictions, U16_ProgramsThatLockCrosswiseAreADeadlock) {
  const auto nested = [&](const char* outer, const char* inner) {
    return start_on_redis({"lock", outer, "--", "sh", "-c",
                           std::string{": > "} + outer + "; while [ ! -e " + inner +
                               " ]; do sleep 0.02; done; exec " + test::built_path("sluice") +
                               " --store " + server_.url() + " lock " + inner + " -- true"},
                          std::string{outer} + ".log");
  };
  auto one = nested("first", "second");
  auto two = nested("second", "first");
  wait_for_key("sluice_lock_queue:{first}");
  wait_for_key("sluice_lock_queue:{second}");
  const Ran graph = run_on_redis({"locks", "--graph"});
  EXPECT_EQ(graph.status, 80) << graph.output;
  EXPECT_TRUE(graph.says("1 deadlock\n")) << graph.output;
  one.terminate();
  two.terminate();
}

TEST_F(Frictions, U16_AHoldIsShownFromItsFirstMoment) {
  auto holder = start_on_redis({"lock", "deploy", "--", "sleep", "60"}, "holder");
  wait_for_key("deploy");
  PlainClient{server_.port()}.command({"BLPOP", "nothing-is-here", "0.1"});
  const auto lock = run_on_redis({"--json", "locks"}).json().at("locks").at(0);
  EXPECT_GE(lock.at("holders").at(0).at("held_ms"), 50);
  holder.terminate();
}

TEST_F(Frictions, U21_TheDoctorTriesWhatLocksDo) {
  PlainClient side{server_.port()};
  side.command({"CONFIG", "SET", "appendonly", "yes"});
  side.command({"ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-@write"});
  const std::string url = "redis://reader:secret@127.0.0.1:" + std::to_string(server_.port());
  const Ran reader = run({"doctor", url});
  EXPECT_EQ(reader.status, 1) << reader.output;
  EXPECT_TRUE(reader.says("danger   write")) << reader.output;
  side.command({"ACL", "SETUSER", "deaf", "on", ">secret", "~*", "resetchannels", "+@all"});
  const Ran deaf =
      run({"doctor", "redis://deaf:secret@127.0.0.1:" + std::to_string(server_.port())});
  EXPECT_EQ(deaf.status, 1) << deaf.output;
  EXPECT_TRUE(deaf.says("danger   messages")) << deaf.output;
  side.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const Ran alone = run_on_redis({"doctor"});
  EXPECT_EQ(alone.status, 1) << alone.output;
  EXPECT_TRUE(alone.says("danger   replicas")) << alone.output;
  EXPECT_TRUE(alone.says("danger   write")) << alone.output;
}

TEST_F(Frictions, U21_TheDoctorNamesANodeOfACluster) {
  const test::RedisServer node{{"cluster-enabled yes"}};
  const Ran ran = run({"doctor", node.url()});
  EXPECT_NE(ran.status, 0);
  EXPECT_TRUE(ran.says("node of a cluster")) << ran.output;
}

TEST_F(Frictions, U21_TheDoctorKnowsThatAFolderHasNoConfigSet) {
  const Ran folder = run({"doctor", "embedded:" + (folder_ / "data").string()});
  EXPECT_EQ(folder.status, 0) << folder.output;
  EXPECT_FALSE(folder.says("CONFIG SET")) << folder.output;
  const Ran memory = run({"doctor", "embedded:"});
  EXPECT_EQ(memory.status, 1) << memory.output;
  EXPECT_FALSE(memory.says("CONFIG SET")) << memory.output;
}

TEST_F(Frictions, U19_ABadUrlIsNamedByWhereItStands) {
  EXPECT_TRUE(run({"--store", "server:6379/", "id"}).says("id: --store: 'server:' is no kind"));
  test::Process drawing{{"sh", "-c",
                         "SLUICE_STORE=server " + test::built_path("sluice") +
                             " id 2>&1 | grep -q 'id: $SLUICE_STORE: this is no URL'"}};
  EXPECT_EQ(drawing.wait(), 0);
}

TEST_F(Frictions, U22_AStoreInMemoryIsWarnedOf) {
  for (const CommandWords& words :
       {CommandWords{"lock", "deploy", "--", "true"}, CommandWords{"number", "MT"}}) {
    CommandWords line = words;
    line.insert(line.begin(), {"--store", "embedded:"});
    const Ran ran = run(line);
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_TRUE(ran.says("warning: 'embedded:' is the memory of this process")) << ran.output;
  }
  const Ran kept = run({"--store", "embedded:" + (folder_ / "data").string(), "number", "MT"});
  EXPECT_FALSE(kept.says("warning")) << kept.output;
}

TEST_F(Frictions, U27_ACommandThatCannotRunIsQuoted) {
  EXPECT_TRUE(run_on_redis({"lock", "j", "--", "nosuchcmd"})
                  .says("sluice: cannot run 'nosuchcmd': No such file or directory\n"));
}

TEST_F(Frictions, U28_LocksCanBeReleasedAndWatched) {
  for (const CommandWords& kind : {CommandWords{"lock"}, CommandWords{"lock", "--fair"},
                                   CommandWords{"lock", "--exclusive"}}) {
    CommandWords words = kind;
    words.insert(words.end(), {"deploy", "--lease", "3s", "--", "sleep", "60"});
    auto holder = start_on_redis(words, "holder");
    wait_for_key("deploy");
    const Ran released = run_on_redis({"locks", "deploy", "--force-release"});
    EXPECT_EQ(released.status, 0) << released.output;
    EXPECT_TRUE(released.says("released 'deploy', which was held by sleep@")) << released.output;
    EXPECT_EQ(holder.wait_for(20s), 76);
  }
  EXPECT_EQ(run_on_redis({"locks", "deploy", "--force-release"}).status, 75);
  EXPECT_EQ(run_on_redis({"locks", "--force-release"}).status, 64);

  auto watcher = start_on_redis({"locks", "--watch"}, "watcher");
  const auto looks = [&] {
    const auto text = read_file(folder_ / "watcher");
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  wait_until([&](PlainClient&) { return looks() >= 2; });
  watcher.terminate();
  EXPECT_EQ(watcher.wait_for(20s), 0);
}

TEST_F(Frictions, N01_ClosedStandardDescriptorsAreNotTheStores) {
  const std::string store = "embedded:" + (folder_ / "data").string();
  const auto line = test::built_path("sluice") + " --store " + store + " number MT -n 3 ";
  for (const char* const closed : {"<&- >&-", "<&- >&- 2>&-", "<&- 2>&-"}) {
    test::Process drawing{{"sh", "-c", line + closed}};
    EXPECT_EQ(drawing.wait(), std::string{closed}.starts_with("<&- >&-") ? 74 : 0) << closed;
  }
  const Ran next = run({"--store", store, "number", "MT"});
  EXPECT_EQ(next.status, 0) << next.output;
  EXPECT_TRUE(next.last_line().ends_with("0004")) << "what nobody can read is not taken";
}

TEST_F(Frictions, N02_AMessageThatCannotBeWrittenEndsNoHold) {
  for (const char* const stderr_is : {"2>/dev/full", "2>&-", "2> >(true)"}) {
    test::Process holder{{"bash", "-c",
                          "exec " + test::built_path("sluice") + " --store " + server_.url() +
                              " lock deploy --lease 900ms -- sleep 60 " + stderr_is}};
    wait_for_key("deploy");
    PlainClient{server_.port()}.command({"DEL", "deploy"});
    EXPECT_EQ(holder.wait_for(20s), 76) << stderr_is;
  }
}

/// The commands that do something, as the program's own table has them.
std::set<std::string> commands_in(const std::string& markdown) {
  std::set<std::string> commands;
  std::istringstream lines{markdown};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("## sluice ")) commands.insert(line.substr(10));
  for (const char* const other : {"latch", "sale", "bloom", "room", "proxy"}) commands.erase(other);
  return commands;
}

TEST_F(Frictions, N06_OutputThatCannotBeWrittenIsAFailureOfEveryCommand) {
  test::Served service{folder_, 0, {"--data", (folder_ / "data").string(), "--sale", "tea=100"}};
  ASSERT_TRUE(service.begins()) << service.output();
  // In this order; each is run with a full disk and with a closed stdout.
  const std::vector<std::pair<std::string, std::string>> lines{
      {"lock", "--json lock L -- true"},
      {"semaphore", "--json semaphore S --permits 2 -- true"},
      {"latch set", "latch G set --reset 2"},
      {"latch count-down", "latch G count-down"},
      {"latch show", "latch G show"},
      {"latch wait", "--json latch G wait -- true"},
      {"locks", "locks --watch"},
      {"number", "number N"},
      {"number repair", "number M repair"},
      {"id", "id"},
      {"sale create", "sale create \"sale $0\" --stock 2 --type \"T$0\""},
      {"sale buy", "sale buy \"sale $0\" --buyer Ann"},
      {"sale buy", "sale buy \"sale $0\" --buyer Bob"},
      {"sale work", "sale work \"sale $0\" --until-empty"},
      {"sale audit", "sale audit \"sale $0\""},
      {"sale status", "sale status \"sale $0\""},
      {"sale list", "sale list"},
      {"sale cancel",
       "sale cancel \"sale $0\" --number \"T$0$(date -u +%Y%m%d)0001\" --reason none"},
      {"sale refund", "sale refund \"sale $0\" --number \"T$0$(date -u +%Y%m%d)0002\" --key once"},
      {"sale replay", "sale replay \"sale $0\""},
      {"sale payments", "sale payments \"sale $0\" --state waiting"},
      {"sale settle", "sale settle --provider a --event once --by ann --reason none"},
      {"sale stock", "sale stock \"sale $0\" --to 3"},
      {"sale close", "sale close \"sale $0\""},
      {"sale dead", "--json sale dead \"sale $0\""},
      {"sale recover", "sale recover \"sale $0\""},
      {"sale archive", "sale archive \"sale $0\""},
      {"bloom create", "bloom create B$0 --expected 100"},
      {"bloom add", "bloom add B$0 ann"},
      {"bloom contains", "bloom contains B$0 ann"},
      {"bloom info", "bloom info B$0"},
      {"bloom rebuild", "bloom rebuild B$0 -n 100 ann"},
      {"bloom save", "bloom save B$0 b$0.bloom"},
      {"bloom load", "bloom load C$0 b$0.bloom"},
      {"room create", "room create R$0"},
      {"room status", "room status R$0"},
      {"room rate", "room rate R$0 --inside 7"},
      {"room units", "room units R$0 3"},
      {"room pause", "room pause R$0"},
      {"room resume", "room resume R$0"},
      {"room close", "room close R$0"},
      {"room verify", "room verify R$0"},
      {"room remove", "room remove R$0"},
      {"loadtest",
       fmt::format("loadtest http://127.0.0.1:{} --sale tea --buyers 3", service.port())},
      {"demo", "demo --buyers 5 --stock 2"},
      {"bench", "bench --each 1ms --threads 2"},
      {"doctor", "doctor"},
      {"explain", "explain K"},
      {"serve", "serve help token"},
      {"engine", "engine help serve"},
      {"help", "help lock"},
      {"completion", "completion bash"}};
  run_on_redis({"number", "M"});
  open_order_store("sqlite:" + (folder_ / "orders.db").string())
      ->payments()
      .keep({"a", "once", "nobody's", "T1", 1, "CNY"});
  auto missing = commands_in(run({"help", "--markdown"}).output);
  for (const auto& [command, words] : lines) {
    missing.erase(command);
    int number = 0;
    const auto complaint = "complaint of " + command;
    for (const char* const stdout_is : {">/dev/full", ">&-"}) {
      test::Process writing{
          {"sh", "-c",
           "exec timeout 20 " + test::built_path("sluice") + " --store " + server_.url() + ' ' +
               words + ' ' + stdout_is,
           std::to_string(++number)},
          {.directory = folder_.path(), .environment = {}, .output = folder_ / complaint}};
      const int code = command == "doctor" ? 1 : 74;  // that of a danger stays
      EXPECT_EQ(writing.wait(), code) << words << ' ' << stdout_is;
      EXPECT_NE(read_file(folder_ / complaint).find("output could not be written"),
                std::string::npos)
          << words << ' ' << stdout_is << ": " << read_file(folder_ / complaint);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>{}) << "of the table of commands";
  PlainClient side{server_.port()};
  EXPECT_EQ(side.command({"EXISTS", "L"}).as_integer(), 0) << "released";
  EXPECT_EQ(side.command({"GET", "S"}).as_text(), "2");
}

}  // namespace
}  // namespace sluice
