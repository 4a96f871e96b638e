#include "front/rights.hpp"

#include <gtest/gtest.h>

#include "proxy/redis/taught_commands.hpp"
#include "proxy/support/planning.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy {
using front::Denied;
namespace {

const std::vector<CommandRule> rules{{"my.get", "key 1 read"},
                                     {"my.all", "whole read"},
                                     {"my.pop", "keys 1 -2 1 blocking"},
                                     {"my.*", "key 1"}};
const TaughtCommands taught{rules};

Denied denied(std::string_view acl, std::string_view line) {
  const auto words = words_of(line);
  const auto* spec = resp::find_command(std::span{words});
  if (spec == nullptr) spec = taught.find(words.front());
  return Rights{acl, taught}.check(*spec, words);
}

TEST(Rights, WordsCountInTheirOrder) {
  EXPECT_EQ(denied("+get ~a*", "GET abc"), Denied::nothing);
  EXPECT_EQ(denied("+get ~a*", "GET b"), Denied::key);
  EXPECT_EQ(denied("+get ~a*", "SET abc v"), Denied::command);
  EXPECT_EQ(denied("+get -get ~a*", "GET abc"), Denied::command);
  EXPECT_EQ(denied("-@read +get ~a*", "GET abc"), Denied::nothing);
  EXPECT_EQ(denied("+@all ~*", "PUBLISH c x"), Denied::channel);
  EXPECT_EQ(denied("+get\n\t~a*", "GET abc"), Denied::nothing) << "words on two lines";
  EXPECT_EQ(denied("+get (+set ~b) ~a", "SET b v"), Denied::nothing);
  EXPECT_EQ(denied("+get ( +set ~b ) ~a", "SET a v"), Denied::key);
}

TEST(Rights, OfCommandsThatWereTaughtTheirRulesTell) {
  EXPECT_EQ(denied("+@read ~a", "MY.GET a"), Denied::nothing);
  EXPECT_EQ(denied("+@read ~a", "MY.GET b"), Denied::key);
  EXPECT_EQ(denied("+@read ~a", "MY.SET a v"), Denied::command);
  EXPECT_EQ(denied("+@write ~a", "MY.SET a v"), Denied::nothing);
  EXPECT_EQ(denied("+@write %W~a", "MY.SET a v"), Denied::key) << "it may tell what was there";
  EXPECT_EQ(denied("+@all -@blocking ~a", "MY.POP a 0"), Denied::command);
  EXPECT_EQ(denied("+@fast +@slow ~a", "MY.GET a"), Denied::command);
  EXPECT_EQ(denied("+my.set ~a", "MY.SET a v"), Denied::nothing);
  EXPECT_EQ(denied("+my.set ~a", "MY.PUT a v"), Denied::command);
  EXPECT_EQ(denied("+@all -MY.Set ~a", "my.set a v"), Denied::command);
  EXPECT_EQ(denied("+@all -my.set ~a", "MY.PUT a v"), Denied::nothing);
  EXPECT_EQ(denied("-my.set +@write ~a", "MY.SET a v"), Denied::nothing);
  EXPECT_EQ(denied("+@all ~a", "MY.ALL x"), Denied::key) << "it looks at all keys";
  EXPECT_EQ(denied("+@all %R~*", "MY.ALL x"), Denied::nothing);
  EXPECT_EQ(denied("+json.get ~a", "JSON.GET a"), Denied::nothing);
}

std::string fault_of(std::string_view acl) {
  try {
    Rights{acl, taught};
  } catch (const Error& wrong) {
    return wrong.message();
  }
  return "";
}

TEST(Rights, WhatIsWrongIsSaidWithTheRemedy) {
  const std::pair<const char*, const char*> rows[] = {
      {"+gett", "acl: '+gett' names no command; did you mean 'get'?"},
      {"+@reed", "acl: '+@reed' names no category of commands; did you mean 'read'?"},
      {"+config|gett", "acl: '+config|gett' names no subcommand; did you mean 'config|get'?"},
      {"%X~a",
       "acl: '%X~a' does not say what may be done with which keys; write %R~keys, %W~keys "
       "or ~keys"},
      {"app:*",
       "acl: 'app:*' is no word of an ACL; write +command, -command, +@category, "
       "-@category, ~keys, %R~keys, %W~keys or &channels, or put several in ( )"},
      {"~* ~a",
       "acl: '~a' changes nothing behind 'allkeys'; remove one, or begin with 'resetkeys'"},
      {"on",
       "acl: 'on' has no place here: a user who is in the file is on, and begins with no right"},
      {">secret", "acl: '>' begins a password; that is the user's setting 'password'"},
      {"(+get", "acl: '(' is not closed; end the selector with ')'"},
      {"+@all -select|0",
       "acl: '-select|0' takes away a first word, but words can only be given: "
       "take away the command, then allow it with those that are right"},
  };
  for (const auto& [acl, fault] : rows) EXPECT_EQ(fault_of(acl), fault);
}

TEST(Rights, WordsHaveALimit) {
  std::string many;
  for (int i = 0; i < 4096; ++i) many += "~a ";
  EXPECT_EQ(fault_of(many), "");
  EXPECT_EQ(fault_of(many + "~b"), "acl: '~b' is beyond the 4096 words of an ACL");
}

bool covers(std::string_view now, std::string_view before) {
  return Rights{now, taught}.covers(Rights{before, taught});
}

TEST(Rights, NarrowerOnesDoNotCoverWiderOnes) {
  const std::string_view all = "+@all allkeys allchannels", app = "+@read +set ~app:* &news";
  EXPECT_TRUE(covers(all, app));
  EXPECT_FALSE(covers(app, all));
  EXPECT_TRUE(covers(app, app));
  EXPECT_FALSE(covers("+@read ~app:* &news", app));
  EXPECT_FALSE(covers("+@read +set %R~app:* &news", app));
  EXPECT_FALSE(covers("+@read +set ~app:*", app));
  EXPECT_TRUE(covers("+@read +set ~app:* ~b &news &c", app));
  EXPECT_TRUE(covers("+get ~a (+@read +set ~app:* &news)", app));
  EXPECT_FALSE(covers("+@all -my.set allkeys allchannels", all));
  EXPECT_FALSE((Rights{all, TaughtCommands{{}}}.covers(Rights{app, taught})))
      << "commands are not what they were";
}

}  // namespace
}  // namespace sluice::proxy
