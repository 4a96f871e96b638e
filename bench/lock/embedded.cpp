/// A pair on an embedded engine, beside its scripts alone, and beside Lua alone.
#include <array>
#include <lua.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

namespace sluice::bench {
namespace {

constexpr std::array<std::string_view, 4> keys{
    "bench:scripts", "redisson_lock_token:{bench:scripts}", "sluice_lock_queue:{bench:scripts}",
    "sluice_lock_looks:{bench:scripts}"};
constexpr std::string_view request = "0123456789abcdef0123456789abcdef-1";
constexpr std::array<std::string_view, 5> acquire_args{
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8:1", "30000", request, "host 4711 t4712 lock_bench", ""};
constexpr std::array<std::string_view, 4> release_args{
    request, "redisson_lock__channel:{bench:scripts}", "16", ""};

/// In place of redis.call: what a free lock's scripts are answered, without doing anything.
int answer(lua_State* lua) {
  const std::string_view name = lua_tostring(lua, 1);
  if (name == "TIME") {
    lua_createtable(lua, 2, 0);
    lua_pushliteral(lua, "1760000000");
    lua_rawseti(lua, -2, 1);
    lua_pushliteral(lua, "123456");
    lua_rawseti(lua, -2, 2);
  } else if (name == "SET") {
    lua_pushliteral(lua, "1760000000123455");
  } else if (name == "HGET") {
    lua_pushlstring(lua, request.data(), request.size());
  } else if (name == "LRANGE") {
    lua_newtable(lua);
  } else {
    const bool is_zero = name == "EXISTS" || name == "PUBLISH";
    lua_pushnumber(lua, is_zero ? 0 : 1);
  }
  return 1;
}

/// PUC Lua alone, with scripts as Redis runs them.
class PlainLua {
 public:
  PlainLua() : lua_(luaL_newstate()) {
    luaL_openlibs(lua_);
    lua_newtable(lua_);
    lua_pushcfunction(lua_, answer);
    lua_setfield(lua_, -2, "call");
    lua_setglobal(lua_, "redis");
    acquire_ = compiled(scripts::lock_mutex_acquire);
    release_ = compiled(scripts::lock_mutex_release);
  }
  ~PlainLua() { lua_close(lua_); }
  PlainLua(const PlainLua&) = delete;
  PlainLua& operator=(const PlainLua&) = delete;

  std::size_t operator()() {
    run(acquire_, acquire_args);
    run(release_, release_args);
    return 1;
  }

 private:
  int compiled(const Script& script) {
    if (luaL_loadbuffer(lua_, script.text.data(), script.text.size(), "script") != 0)
      throw std::logic_error{lua_tostring(lua_, -1)};
    return luaL_ref(lua_, LUA_REGISTRYINDEX);
  }
  void set(const char* name, Words words) {
    lua_createtable(lua_, static_cast<int>(words.size()), 0);
    for (int i = 1; const auto word : words) {
      lua_pushlstring(lua_, word.data(), word.size());
      lua_rawseti(lua_, -2, i++);
    }
    lua_setglobal(lua_, name);
  }
  void run(int script, Words args) {
    set("KEYS", keys);
    set("ARGV", args);
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, script);
    if (lua_pcall(lua_, 0, 1, 0) != 0) throw std::logic_error{lua_tostring(lua_, -1)};
    lua_pop(lua_, 1);
  }

  lua_State* lua_;
  int acquire_ = 0;
  int release_ = 0;
};

double nanoseconds(const Options& options, const std::function<std::size_t()>& work) {
  return 1e9 / rate(options.each, work);
}

}  // namespace

std::vector<Row> pair_beside_its_scripts(const Options& options) {
  Row run{.figure = "acquire + release, embedded in memory",
          .unit = "ns",
          .peer = "the same two scripts by Store::run",
          .goal = 1.5,
          .at_most = true};
  Row lua{.figure = run.figure,
          .unit = "ns",
          .peer = "PUC Lua that runs them with empty commands",
          .goal = 3,
          .at_most = true};
  const auto store = open("embedded:");
  Mutex mutex{*store, "bench:pair"};
  PlainLua plain;
  for (int round = 0; round < options.rounds; ++round) {
    const double pair = nanoseconds(options, [&] {
      mutex.acquire().get().release().get();
      return 1;
    });
    run.values.push_back(pair);
    lua.values.push_back(pair);
    run.peer_values.push_back(nanoseconds(options, [&] {
      store->run(scripts::lock_mutex_acquire, keys, acquire_args, {}).get();
      store->run(scripts::lock_mutex_release, keys, release_args, {}).get();
      return 1;
    }));
    lua.peer_values.push_back(nanoseconds(options, std::ref(plain)));
  }
  return {run, lua};
}

}  // namespace sluice::bench
