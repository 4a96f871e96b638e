#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase sets[] = {
    {"SADD s 3 1 2 1", "(integer) 3", "="},
    {"SMEMBERS s", "set[\"1\", \"2\", \"3\"]"},
    {"SADD s 1", "(integer) 0"},
    {"SCARD s", "(integer) 3"},
    {"SISMEMBER s 1", "(integer) 1"},
    {"SISMEMBER none 1", "(integer) 0"},
    {"SMISMEMBER s 1 9", "[(integer) 1, (integer) 0]"},
    {"SREM s 1 9", "(integer) 1", "="},
    {"SREM none 1", "(integer) 0"},
    {"SMEMBERS none", "set[]"},
    {"SMOVE s t 2", "(integer) 1", "="},
    {"SMOVE s t 99", "(integer) 0"},
    {"SMOVE none t 1", "(integer) 0"},
    {"SMEMBERS t", "set[\"2\"]"},
    {"SADD a 1 2 3", "(integer) 3", "="},
    {"SADD b 2 3 4", "(integer) 3", "="},
    {"SINTER a b", "set[\"2\", \"3\"]"},
    {"SUNION a b", "set[\"1\", \"2\", \"3\", \"4\"]"},
    {"SDIFF a b", "set[\"1\"]"},
    {"SINTER a none", "set[]"},
    {"SINTERSTORE d a b", "(integer) 2", "="},
    {"SUNIONSTORE d a b", "(integer) 4", "="},
    {"SDIFFSTORE d a b", "(integer) 1", "="},
    {"SDIFFSTORE d a a", "(integer) 0", "DEL d"},
    {"EXISTS d", "(integer) 0"},
    {"SINTERSTORE none a nothing", "(integer) 0"},
    {"SINTERCARD 2 a b", "(integer) 2"},
    {"SINTERCARD 2 a b LIMIT 1", "(integer) 1"},
    {"SINTERCARD 0 a", "(error) ERR numkeys should be greater than 0"},
    {"SINTERCARD 3 a b", "(error) ERR Number of keys can't be greater than number of args"},
    {"SINTERCARD 2 a b LIMIT -1", "(error) ERR LIMIT can't be negative"},
    {"SINTERCARD 2 a b FOO 1", "(error) ERR syntax error"},
    {"SPOP none", "(nil)"},
    {"SPOP none 2", "set[]"},
    {"SPOP a 0", "set[]"},
    {"SPOP a -1", "(error) ERR value is out of range, must be positive"},
    {"SADD one m", "(integer) 1", "="},
    {"SPOP one", "\"m\"", "SREM one m"},
    {"SADD one m", "(integer) 1", "="},
    {"SPOP one 5", "set[\"m\"]", "SREM one m"},
    {"SRANDMEMBER none", "(nil)"},
    {"SRANDMEMBER none 3", "[]"},
    {"SADD one m", "(integer) 1", "="},
    {"SRANDMEMBER one", "\"m\""},
    {"SRANDMEMBER one -3", "[\"m\", \"m\", \"m\"]"},
    {"SRANDMEMBER one 3", "[\"m\"]"},
    {"SSCAN one 0", "[\"0\", [\"m\"]]"},
    {"SSCAN none 0", "[\"0\", []]"},
    {"SET k v", "OK", "="},
    {"SADD k a", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"SINTER a k", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"SMOVE a k 1", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
};

}  // namespace

std::span<const CommandTable> set_tables() {
  static constexpr CommandTable tables[] = {
      {"sets", sets},
  };
  return tables;
}

}  // namespace sluice::engine
