#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase hashes[] = {
    {"HSET h a 1 b 2", "(integer) 2", "="},
    {"HSET h a 3 c 4", "(integer) 1", "="},
    {"HSET h a", "(error) ERR wrong number of arguments for 'hset' command"},
    {"HSET h a 1 b", "(error) ERR wrong number of arguments for 'hset' command"},
    {"HMSET h d 5", "OK", "="},
    {"HMSET h d", "(error) ERR wrong number of arguments for 'hmset' command"},
    {"HSETNX h a 9", "(integer) 0"},
    {"HSETNX h e 6", "(integer) 1", "="},
    {"HGET h a", "\"3\""},
    {"HGET h none", "(nil)"},
    {"HGET none a", "(nil)"},
    {"HMGET h a none b", "[\"3\", (nil), \"2\"]"},
    {"HMGET none a", "[(nil)]"},
    {"HGETALL h", "map[\"a\", \"3\", \"b\", \"2\", \"c\", \"4\", \"d\", \"5\", \"e\", \"6\"]"},
    {"HGETALL none", "map[]"},
    {"HKEYS h", "[\"a\", \"b\", \"c\", \"d\", \"e\"]"},
    {"HVALS h", "[\"3\", \"2\", \"4\", \"5\", \"6\"]"},
    {"HLEN h", "(integer) 5"},
    {"HEXISTS h a", "(integer) 1"},
    {"HEXISTS h none", "(integer) 0"},
    {"HSTRLEN h a", "(integer) 1"},
    {"HINCRBY h a 5", "(integer) 8", "="},
    {"HINCRBY h n -7", "(integer) -7", "="},
    {"HINCRBY h a x", "(error) ERR value is not an integer or out of range"},
    {"HSET h t text", "(integer) 1", "="},
    {"HINCRBY h t 1", "(error) ERR hash value is not an integer"},
    {"HINCRBYFLOAT h t 1", "(error) ERR hash value is not a float"},
    {"HINCRBYFLOAT h a 0.5", "\"8.5\"", "HSET h a 8.5"},
    {"HINCRBYFLOAT h a x", "(error) ERR value is not a valid float"},
    {"HSET h big 9223372036854775807", "(integer) 1", "="},
    {"HINCRBY h big 1", "(error) ERR increment or decrement would overflow"},
    {"HDEL h a none b", "(integer) 2", "="},
    {"HDEL none a", "(integer) 0"},
    {"HSCAN h 0",
     "[\"0\", [\"c\", \"4\", \"d\", \"5\", \"e\", \"6\", \"n\", \"-7\", \"t\", \"text\", \"big\", "
     "\"9223372036854775807\"]]"},
    {"HSCAN none 0", "[\"0\", []]"},
    {"HSCAN h x", "(error) ERR invalid cursor"},
    {"HRANDFIELD none", "(nil)"},
    {"HRANDFIELD none 3", "[]"},
    {"HRANDFIELD h 0", "[]"},
    {"HRANDFIELD h 1 FOO", "(error) ERR syntax error"},
    {"HDEL h c d e n t big", "(integer) 6", "="},
    {"EXISTS h", "(integer) 0"},
    {"SET s v", "OK", "="},
    {"HGET s a", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"HSET s a b", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"HGETALL s", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
};

}  // namespace

std::span<const CommandTable> hash_tables() {
  static constexpr CommandTable tables[] = {
      {"hashes", hashes},
  };
  return tables;
}

}  // namespace sluice::engine
