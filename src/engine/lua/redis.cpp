#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/sha1.hpp"
#include "engine/core/engine.hpp"
#include "engine/lua/call_arguments.hpp"
#include "engine/lua/libraries.hpp"
#include "engine/lua/reply.hpp"
#include "resp/command_table.hpp"
#include "sluice/log.hpp"

namespace sluice::engine {
namespace {

constexpr std::string_view version = "7.2.0";
constexpr int version_number = 0x00070200;
constexpr std::uint64_t steps_per_call = 50;  // what a command costs in instructions

ScriptRun& run_of(lua_State* lua) {
  return *static_cast<ScriptRun*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

/// The command that the first argument names, from the cache or the table.
const Engine::Command* command_named_first(lua_State* lua, Engine& engine, Words words) {
  auto& called = *static_cast<CommandCache*>(lua_touserdata(lua, lua_upvalueindex(2)));
  if (const auto* known = called.find(words[0])) return known;
  const auto* command = engine.command_named(words[0]);
  if (command != nullptr) called.remember(words[0], *command);
  return command;
}

/// Reaches other clients, as a write does; PUBSUB only reports.
bool publishes(const resp::CommandSpec& spec) {
  return spec.has(resp::flag_pubsub) && (spec.name == "publish" || spec.name == "spublish");
}

/// Why a script may not run the command; empty: it may.
std::string_view refusal(ScriptRun& run, const Engine::Command* command, Words words) {
  constexpr std::string_view unknown = "ERR Unknown Redis command called from script";
  if (command == nullptr) return unknown;
  const auto* const asked = resp::find_command(words);
  const auto& spec = !command->handler && asked ? *asked : *command->spec;
  if (!spec.arity_fits(words.size()))
    return "ERR Wrong number of args calling Redis command from script";
  if (spec.has(resp::flag_noscript)) return "ERR This Redis command is not allowed from script";
  if (command->handler == nullptr) return unknown;
  if (run.read_only && (spec.has(resp::flag_write) || publishes(spec)))
    return "ERR Write commands are not allowed from read-only scripts.";
  Guard* const guard = run.context->session().guard;
  if (guard) run.refusal = guard->refusal_of(spec, words).value_or("");
  return guard ? std::string_view{run.refusal} : std::string_view{};
}

/// Runs a command. What is thrown out of it, by Lua where its memory is at its limit too, may have
/// left it half done: then the script is ended, and all is undone.
void run_command(ScriptRun& run, const Engine::Command& command, Words words, LuaReply& reply) {
  const auto end = [&](ScriptRun::End why) {
    if (!run.ended()) run.end = why;
  };
  try {
    run.engine->run(*run.context, command, words, reply);
  } catch (const ScriptEnded&) {
  } catch (const std::bad_alloc&) {
    end(ScriptRun::End::memory);
  } catch (const std::exception& error) {
    run.failure = error.what();
    end(ScriptRun::End::failure);
  } catch (...) {
    end(ScriptRun::End::memory);
  }
}

/// Bytes that a command may add to the data.
std::size_t size_of(Words words) noexcept {
  std::size_t size = 0;
  for (const auto& word : words) size += word.size();
  return size;
}

/// Leaves the reply on the stack; true: it is an error.
bool call_command(lua_State* lua) {
  ScriptRun& run = run_of(lua);
  if (run.ended()) raise_end(lua, run);
  const int count = lua_gettop(lua);
  if (count == 0) {
    push_error(lua, "ERR Please specify at least one argument for this redis lib call");
    return true;
  }
  CallArguments arguments(count);
  if (!arguments.take(lua)) {
    push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
    return true;
  }
  const auto words = arguments.words();
  const auto* command = command_named_first(lua, *run.engine, words);
  if (command != nullptr && command->has_subcommands && count > 1)
    command = run.engine->subcommand_named(*command, words[1]);
  if (const auto reason = refusal(run, command, words); !reason.empty()) {
    push_error(lua, reason);
    return true;
  }
  LuaReply reply(lua, run.protocol, *run.context);
  const auto blocks = run.context->blocks().size();
  if (!spend(run, steps_per_call)) {
    if (command->spec->has(resp::flag_write)) run.engine->undo()->wrote(size_of(words));
    run_command(run, *command, words, reply);
  }
  if (run.ended()) {
    lua_settop(lua, count);
    raise_end(lua, run);
  }
  if (!reply.complete()) {  // it would wait: inside a script its time is up at once
    run.context->blocks().resize(blocks);
    reply.null_array();
  }
  return reply.is_error();
}

int call(lua_State* lua) {
  if (call_command(lua)) return lua_error(lua);
  return 1;
}

int pcall(lua_State* lua) {
  call_command(lua);
  return 1;
}

/// The single text argument; false: an error table was pushed.
bool one_text(lua_State* lua, std::string_view& text) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_table_with(lua, "err", "ERR wrong number or type of arguments");
    return false;
  }
  text = text_at(lua, 1);
  return true;
}

/// redis.error_reply: a text without a code gets ERR.
int error_reply(lua_State* lua) {
  std::string_view given;
  if (!one_text(lua, given)) return 1;
  given = given.substr(0, given.find('\0'));
  given.remove_prefix(given.starts_with('-') ? 1 : 0);
  const auto blank = given.find(' ');
  std::string text{blank == given.npos ? "ERR" : given.substr(0, blank)};
  given.remove_prefix(blank == given.npos ? 0 : blank + 1);
  given.remove_prefix(std::min(given.find_first_not_of("\r\n"), given.size()));
  text += ' ';
  text += given.substr(0, given.find_last_not_of("\r\n") + 1);
  return push_table_with(lua, "err", text);
}

int status_reply(lua_State* lua) {
  std::string_view text;
  if (!one_text(lua, text)) return 1;
  return push_table_with(lua, "ok", text);
}

int sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) raise_error(lua, "ERR wrong number of arguments");
  return push_text(lua, sha1_hex(text_at(lua, 1)));
}

int log(lua_State* lua) {
  static constexpr LogLevel levels[] = {LogLevel::debug, LogLevel::debug, LogLevel::info,
                                        LogLevel::warning};
  const int count = lua_gettop(lua);
  if (count < 2) raise_error(lua, "ERR redis.log() requires two arguments or more.");
  if (!lua_isnumber(lua, 1)) raise_error(lua, "ERR First argument must be a number (log level).");
  const double level = lua_tonumber(lua, 1);
  if (!(level >= 0 && level <= 3)) raise_error(lua, "ERR Invalid debug level.");
  ScriptString line{ScriptAllocator<char>{lua}};
  for (int i = 2; i <= count; ++i) {
    if (i > 2) line += ' ';
    line += text_at(lua, i);
  }
  sluice::log(levels[static_cast<std::size_t>(level)], line);
  return 0;
}

int setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) raise_error(lua, "ERR redis.setresp() requires one argument.");
  const double wanted = lua_tonumber(lua, 1);
  if (wanted != 2 && wanted != 3) raise_error(lua, "ERR RESP version must be 2 or 3.");
  ScriptRun& run = run_of(lua);
  run.protocol = wanted == 3 ? 3 : 2;
  run.context->session().protocol = run.protocol;
  return 0;
}

/// Accepted as Redis does; here effects are always logged.
int set_repl(lua_State* lua) {
  if (lua_gettop(lua) != 1) raise_error(lua, "ERR redis.set_repl() requires two arguments.");
  const double flags = lua_tonumber(lua, 1);
  if (!(flags >= 0 && flags <= 3))
    raise_error(
        lua, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  return 0;
}

int push_boolean(lua_State* lua, bool value) {
  lua_pushboolean(lua, value);
  return 1;
}
int replicate_commands(lua_State* lua) { return push_boolean(lua, true); }
int breakpoint(lua_State* lua) { return push_boolean(lua, false); }
int debug(lua_State*) { return 0; }

int acl_check_cmd(lua_State* lua) {
  if (lua_gettop(lua) == 0)
    raise_error(lua, "ERR Please specify at least one argument for this redis lib call");
  if (run_of(lua).engine->offered(resp::find_command(text_at(lua, 1))) == nullptr)
    raise_error(lua, "ERR Invalid command passed to redis.acl_check_cmd()");
  return push_boolean(lua, true);
}

constexpr luaL_Reg with_run[] = {
    {"call", call},
    {"pcall", pcall},
    {"setresp", setresp},
    {"acl_check_cmd", acl_check_cmd},
};

constexpr luaL_Reg plain[] = {
    {"error_reply", error_reply}, {"status_reply", status_reply},
    {"sha1hex", sha1hex},         {"log", log},
    {"set_repl", set_repl},       {"replicate_commands", replicate_commands},
    {"breakpoint", breakpoint},   {"debug", debug},
    {nullptr, nullptr},
};

struct Constant {
  const char* name;
  int value;
};
constexpr Constant constants[] = {
    {"LOG_DEBUG", 0},    {"LOG_VERBOSE", 1},
    {"LOG_NOTICE", 2},   {"LOG_WARNING", 3},
    {"REPL_NONE", 0},    {"REPL_AOF", 1},
    {"REPL_REPLICA", 2}, {"REPL_SLAVE", 2},
    {"REPL_ALL", 3},     {"REDIS_VERSION_NUM", version_number},
};

void add_constants(lua_State* lua) {
  for (const auto& constant : constants) {
    lua_pushinteger(lua, constant.value);
    lua_setfield(lua, -2, constant.name);
  }
  set_text(lua, "REDIS_VERSION", version);
}

}  // namespace

void push_loading_redis(lua_State* lua) {
  lua_newtable(lua);
  lua_pushcfunction(lua, log);
  lua_setfield(lua, -2, "log");
  add_constants(lua);
}

void push_redis_library(lua_State* lua, ScriptRun& run) {
  static_assert(std::is_trivially_destructible_v<CommandCache>);
  lua_newtable(lua);
  new (lua_newuserdata(lua, sizeof(CommandCache))) CommandCache;
  for (const auto& function : with_run) {
    lua_pushlightuserdata(lua, &run);
    lua_pushvalue(lua, -2);
    lua_pushcclosure(lua, function.func, 2);
    lua_setfield(lua, -3, function.name);
  }
  lua_pop(lua, 1);
  add_functions(lua, plain);
  add_constants(lua);
}

}  // namespace sluice::engine
