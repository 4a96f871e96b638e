// The engine against a real redis-server: the same random commands and scripts must give the same
// replies and leave the same data; and the effects that the engine would log must give that data
// once more.
//
//   SLUICE_SEEDS=2000   more runs          SLUICE_SEED=17   this run alone
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "engine/commands/redis_engine.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/core/reply.hpp"
#include "engine/differential/compare.hpp"
#include "engine/differential/grammar.hpp"
#include "engine/differential/templates.hpp"
#include "port/port_under_test.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

/// What a run is made of.
struct Kind {
  std::span<const std::string_view> templates;
  Grammar::Keys keys = Grammar::Keys::typed;
  std::size_t commands = 150;
  std::uint64_t seeds = 150;
};

struct Step {
  Command words;
  Command inner;  ///< decides the form of the reply: itself, or the command inside a script
};
using Steps = std::vector<Step>;

class Redis {
 public:
  Redis(std::uint16_t port, int protocol) : client_(port) {
    client_.command({"HELLO", std::to_string(protocol)});
  }

  Value run(const Command& words) { return client_.command(std::span<const std::string>{words}); }
  void clear() {
    run({"FLUSHALL"});
    run({"FUNCTION", "FLUSH"});
  }

 private:
  PlainClient client_;
};

class Embedded {
 public:
  explicit Embedded(int protocol) : protocol_(protocol) { clear(); }

  Value run(const Command& words) {
    using namespace std::chrono;
    const std::vector<std::string_view> views{words.begin(), words.end()};
    engine::Context context{
        *engine_, session_,
        duration_cast<microseconds>(system_clock::now().time_since_epoch()).count()};
    engine::ValueReply reply{protocol_};
    engine_->execute(context, views, reply);
    for (auto& effect : context.effects()) effects_.push_back(std::move(effect));
    return reply.take();
  }
  void clear() {
    engine_ = std::make_unique<engine::RedisEngine>(1);
    session_ = {.database = 0, .protocol = protocol_};
    effects_.clear();
  }
  const std::vector<Command>& effects() const { return effects_; }

 private:
  int protocol_;
  std::unique_ptr<engine::RedisEngine> engine_;
  engine::Session session_;
  std::vector<Command> effects_;
};

Steps steps_of(const Kind& kind, std::uint64_t seed) {
  static constexpr std::string_view call[] = {"EVAL script 2 <key> <key> <value> <member>"};
  Grammar commands{seed, kind.templates, kind.keys};
  Grammar calls{seed, call, kind.keys};
  Steps steps;
  while (steps.size() < kind.commands) {
    auto command = commands.next();
    const auto way = commands.below(10);
    if (way == 0) {  // a whole script
      Command words = calls.next();
      if (words.size() > 1) words[1] = scripts[commands.below(std::size(scripts))];
      steps.push_back({words, words});
    } else if (way == 1) {  // the command, called by a script
      const std::string function = commands.one_in(2) ? "call" : "pcall";
      Command words{"EVAL", "return redis." + function + "(unpack(ARGV))", "0"};
      words.insert(words.end(), command.begin(), command.end());
      steps.push_back({std::move(words), std::move(command)});
    } else {
      steps.push_back({command, command});
    }
  }
  return steps;
}

/// What is wrong with a run of `steps`, if anything.
std::optional<std::string> wrong(const Steps& steps, Redis& redis, Embedded& embedded,
                                 int protocol) {
  redis.clear();
  embedded.clear();
  for (const auto& step : steps) {
    const auto theirs = canonical(step.inner, redis.run(step.words));
    const auto ours = canonical(step.inner, embedded.run(step.words));
    if (!same_reply(step.inner, theirs, ours))
      return fmt::format("{}\n  redis:  {}\n  engine: {}", to_line(step.words), to_string(theirs),
                         to_string(ours));
  }
  const auto theirs = dump([&](const Command& words) { return redis.run(words); });
  const auto ours = dump([&](const Command& words) { return embedded.run(words); });
  if (auto differs = difference(theirs, ours); !differs.empty())
    return "redis and engine differ: " + differs;
  Embedded replayed{protocol};
  for (const auto& effect : embedded.effects())
    if (const auto reply = replayed.run(effect); reply.is_error())
      return fmt::format("the effect {} is refused: {}", to_line(effect), to_string(reply));
  const auto again = dump([&](const Command& words) { return replayed.run(words); });
  if (auto differs = difference(ours, again); !differs.empty())
    return "engine and its replayed effects differ: " + differs;
  return std::nullopt;
}

/// Leaves out steps, at first many at once, as long as the run stays wrong.
Steps shrink(Steps steps, const std::function<bool(const Steps&)>& is_wrong) {
  for (std::size_t chunk = steps.size() / 2; chunk > 0; chunk /= 2) {
    for (std::size_t at = 0; at < steps.size();) {
      Steps fewer = steps;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(chunk, steps.size() - at)));
      if (is_wrong(fewer))
        steps = std::move(fewer);
      else
        at += chunk;
    }
  }
  return steps;
}

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// False: it failed.
bool expect_same(const Kind& kind, std::uint64_t seed, RedisServer& server) {
  const int protocol = seed % 2 == 0 ? 2 : 3;
  Redis redis{server.port(), protocol};
  Embedded embedded{protocol};
  const auto steps = steps_of(kind, seed);
  if (!wrong(steps, redis, embedded, protocol)) return true;
  const auto fewer = shrink(
      steps, [&](const Steps& some) { return wrong(some, redis, embedded, protocol).has_value(); });
  std::string lines;
  for (const auto& step : fewer) lines += "  " + to_line(step.words) + '\n';
  ADD_FAILURE() << "seed " << seed << ", RESP" << protocol << ", shortest run:\n"
                << lines
                << wrong(fewer, redis, embedded, protocol).value_or("(not wrong every time)");
  return false;
}

void expect_same(const Kind& kind) {
  RedisServer server;
  const auto only = number_from_environment("SLUICE_SEED", 0);
  const auto last = only != 0 ? only : number_from_environment("SLUICE_SEEDS", kind.seeds);
  int failures_left = 10;  // more of them tell little
  for (auto seed = std::max<std::uint64_t>(only, 1); seed <= last && failures_left > 0; ++seed)
    if (!expect_same(kind, seed, server)) --failures_left;
}

TEST(Differential, EngineAnswersAsRedisDoes) { expect_same({.templates = command_templates}); }

/// The same two questions to two servers: ours is the engine at a port.
std::optional<std::string> wrong_at_port(const Steps& steps, Redis& redis, Redis& served) {
  redis.clear();
  served.clear();
  for (const auto& step : steps) {
    const auto theirs = canonical(step.inner, redis.run(step.words));
    const auto ours = canonical(step.inner, served.run(step.words));
    if (!same_reply(step.inner, theirs, ours))
      return fmt::format("{}\n  redis: {}\n  port:  {}", to_line(step.words), to_string(theirs),
                         to_string(ours));
  }
  return std::nullopt;
}

TEST(Differential, APortAnswersAsRedisDoes) {
  RedisServer server;
  const PortUnderTest port;
  for (const auto& templates :
       {std::span<const std::string_view>{command_templates}, {edge_templates}})
    for (std::uint64_t seed = 1; seed <= number_from_environment("SLUICE_SEEDS", rounds(40U));
         ++seed) {
      const int protocol = seed % 2 == 0 ? 2 : 3;
      Redis redis{server.port(), protocol}, served{port.port(), protocol};
      const auto steps = steps_of({.templates = templates}, seed);
      const auto is_wrong = [&](const Steps& some) {
        return wrong_at_port(some, redis, served).has_value();
      };
      if (!is_wrong(steps)) continue;
      const auto fewer = shrink(steps, is_wrong);
      std::string lines;
      for (const auto& step : fewer) lines += "  " + to_line(step.words) + '\n';
      ADD_FAILURE() << "seed " << seed << ", RESP" << protocol << ", shortest run:\n"
                    << lines << wrong_at_port(fewer, redis, served).value_or("(not every time)");
    }
}

/// Without streams: a stream's ids come from the commands before, which a key of any type breaks
/// off.
TEST(Differential, WhateverStandsAtAKey) {
  std::vector<std::string_view> templates;
  std::ranges::copy_if(command_templates, std::back_inserter(templates),
                       [](std::string_view text) { return !text.starts_with('X'); });
  expect_same({.templates = templates,
               .keys = Grammar::Keys::mixed,
               .commands = 600,
               .seeds = rounds(40U)});
}

TEST(Differential, CO12_EdgesOfNumbersAndOddForms) {
  expect_same({.templates = edge_templates, .commands = 60, .seeds = rounds(150U)});
}

TEST(Differential, LargeCollections) {
  expect_same({.templates = large_templates, .commands = 2500, .seeds = rounds(6U)});
}

TEST(Differential, Places) { expect_same({.templates = geo_templates, .seeds = rounds(200U)}); }

TEST(Differential, DistinctElements) {
  expect_same({.templates = distinct_templates, .commands = 1000, .seeds = rounds(20U)});
}

TEST(Differential, Functions) {
  expect_same({.templates = function_templates, .commands = 100, .seeds = rounds(150U)});
}

/// Texts of JSON with each byte at each place: instead of what is there, and before it.
TEST(Differential, R08_EachByteAtEachPlaceOfJson) {
  RedisServer server;
  Redis redis{server.port(), 2};
  Embedded embedded{2};
  const std::string decode =
      "local all = {} for i, text in ipairs(ARGV) do local good, got = pcall(cjson.decode, text) "
      "all[i] = good and cjson.encode({got}) or got end return all";
  const std::string_view texts[] = {R"({"a":[1,-2.5e+3,true,false,null,"b\n\\"]})",
                                    R"("a\u0041\ud83d\ude00b")", R"("\udbff\udfff")",
                                    R"("\ude00\ud83d")", R"(["\ud83d",0.10])"};
  int inputs = 0, wrong = 0;
  for (const auto text : texts)
    for (std::size_t at = 0; at <= text.size(); ++at)
      for (const std::size_t gone : {0, 1}) {
        Command command{"EVAL", decode, "0"};
        for (int byte = 0; byte < 256; ++byte)
          command.push_back(std::string{text}.replace(at, gone, 1, static_cast<char>(byte)));
        const auto theirs = redis.run(command), ours = embedded.run(command);
        for (std::size_t i = 0; i < 256; ++i, ++inputs) {
          if (theirs.as_items().at(i) == ours.as_items().at(i) || ++wrong > 20) continue;
          ADD_FAILURE() << to_line({command.at(3 + i)})
                        << "\n  redis:  " << to_string(theirs.as_items()[i])
                        << "\n  engine: " << to_string(ours.as_items()[i]) << "\n  input "
                        << inputs;
        }
      }
  EXPECT_EQ(wrong, 0) << "of " << inputs;
}

}  // namespace
}  // namespace sluice::test
