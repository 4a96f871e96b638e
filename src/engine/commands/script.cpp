#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/lua/reply.hpp"
#include "engine/lua/scripts.hpp"

namespace sluice::engine {
namespace {

/// The keys and arguments behind the script and the number of keys.
ScriptRunner::Call read_call(Words words, bool read_only) {
  const auto keys = read_integer(words[2]);
  if (keys > static_cast<std::int64_t>(words.size() - 3))
    refuse("ERR Number of keys can't be greater than number of args");
  if (keys < 0) refuse("ERR Number of keys can't be negative");
  const auto rest = words.subspan(3);
  const auto count = static_cast<std::size_t>(keys);
  return {rest.first(count), rest.subspan(count), read_only};
}

using Evaluate = void (ScriptRunner::*)(Context&, std::string_view script,
                                        const ScriptRunner::Call&, Reply&);

template <Evaluate evaluate, bool read_only>
void eval(Context& context, Words words, Reply& reply) {
  const auto call = read_call(words, read_only);
  (context.engine().scripts().*evaluate)(context, words[1], call, reply);
  context.logged_already();
}

void script_load(Context& context, Words words, Reply& reply) {
  const auto sha1 = context.engine().scripts().load(words[2]);
  sha1 ? reply.bulk(*sha1) : reply.error(one_line(sha1.error()));
}

void script_exists(Context& context, Words words, Reply& reply) {
  const auto asked = words.subspan(2);
  reply.array(asked.size());
  for (const auto& sha1 : asked) reply.integer(context.engine().scripts().knows(sha1) ? 1 : 0);
}

void script_flush(Context& context, Words words, Reply& reply) {
  const bool known =
      words.size() == 2 ||
      (words.size() == 3 && (is_word(words[2], "sync") || is_word(words[2], "async")));
  if (!known) return reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  context.engine().scripts().flush();
  reply.ok();
}

/// One script runs at a time, under the engine's lock: no script runs while SCRIPT KILL does.
void script_kill(Context&, Words, Reply& reply) {
  reply.error("NOTBUSY No scripts in execution right now.");
}

void script_debug(Context&, Words words, Reply& reply) {
  if (is_word(words[2], "no")) return reply.ok();
  if (is_word(words[2], "yes") || is_word(words[2], "sync"))
    return reply.error("ERR The embedded engine has no debugger for scripts");
  reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

}  // namespace

CommandRows script_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"eval", eval<&ScriptRunner::eval, false>},
      {"eval_ro", eval<&ScriptRunner::eval, true>},
      {"evalsha", eval<&ScriptRunner::evalsha, false>},
      {"evalsha_ro", eval<&ScriptRunner::evalsha, true>},
      {"script|debug", script_debug},
      {"script|exists", script_exists},
      {"script|flush", script_flush},
      {"script|kill", script_kill},
      {"script|load", script_load},
  };
  return rows;
}

}  // namespace sluice::engine
