// Commands that say how many keys they have, with numbers that are none: the proxy and the engine
// say what a server says.
#include <algorithm>

#include "proxy/flow/two_servers.hpp"
#include "resp/command_table.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;
using CountsOfKeys = TwoServers;

Texts words_of(const resp::CommandSpec& spec, const std::string& number) {
  const bool pops = spec.name.ends_with("mpop");
  const std::string before = pops                             ? "0.01"
                             : spec.name.starts_with("evals") ? std::string(40, 'a')
                             : spec.name.starts_with("eval")  ? "return 1"
                                                              : "f";
  Texts words{std::string{spec.name}};
  if (spec.rule_at == 2) words.push_back(before);
  words.insert(words.end(), {number, "k"});
  if (pops) words.emplace_back(spec.name.find('z') == spec.name.npos ? "LEFT" : "MIN");
  return words;
}

std::string error_in(const Value& reply) {
  return reply.is_error() ? reply.as_text() : std::string{"no error"};
}

TEST_F(CountsOfKeys, R07_AreRefusedInTheWordsOfTheServer) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  PlainClient server = direct(0);
  const auto engine = open("embedded:");
  int inputs = 0;
  for (std::size_t i = 0; i < 2; ++i)
    direct(i).command({"FUNCTION", "LOAD",
                       "#!lua name=l\nredis.register_function('f', function() return 1 end)"});
  for (const auto& spec : resp::all_commands()) {
    const bool is_known =
        !server.command({"COMMAND", "INFO", spec.name}).as_items().at(0).is_null();
    if (spec.rule != resp::KeyRule::counted || !is_known) continue;
    for (const auto* const number :
         {"-1", "0", "x", "1.5", "", " 1", "+1", "01", "1", "2", "3", "4", "99",
          "9223372036854775807", "9223372036854775808", "-9223372036854775808",
          "-9223372036854775809", "18446744073709551615"}) {
      const auto words = words_of(spec, number);
      const auto told = error_in(server.command(words));
      ++inputs;
      EXPECT_EQ(error_in(client.command(words)), told)
          << "proxy: " << spec.name << " '" << number << "', input " << inputs;
      if (spec.name.starts_with("fcall")) continue;  // the engine has no functions
      std::string said = "no error";
      try {
        (void)engine->run(Words{std::vector<std::string_view>{words.begin(), words.end()}}).get();
      } catch (const Error& error) {
        said = error.message();
      }
      EXPECT_NE(said.find(told.substr(0, told.find(" script:"))), said.npos)
          << "engine: " << spec.name << " '" << number << "': " << said << ", and not " << told;
    }
  }
  EXPECT_GT(inputs, 200);
}

}  // namespace
}  // namespace sluice::test
