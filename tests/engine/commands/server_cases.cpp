#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase server[] = {
    {"PING", "PONG"},
    {"PING hello", "\"hello\""},
    {"PING a b", "(error) ERR wrong number of arguments for 'ping' command"},
    {"ECHO hello", "\"hello\""},
    {"ECHO", "(error) ERR wrong number of arguments for 'echo' command"},
    {"WAIT 0 0", "(integer) 0"},
    {"ROLE", "[\"master\", (integer) 0, []]"},
    {"PUBLISH nobody message", "(integer) 0"},
    {"PUBSUB NUMSUB a b", "[\"a\", (integer) 0, \"b\", (integer) 0]"},
    {"PUBSUB CHANNELS", "[]"},
    {"PUBSUB FOO", "(error) ERR unknown subcommand 'FOO'. Try PUBSUB HELP."},
    {"CONFIG FOO", "(error) ERR unknown subcommand 'FOO'. Try CONFIG HELP."},
    {"COMMAND FOO", "(error) ERR unknown subcommand 'FOO'. Try COMMAND HELP."},
    {"COMMAND INFO nothing", "[(nil)]"},
    {"COMMAND GETKEYS MSET a 1 b 2", "[\"a\", \"b\"]"},
    {"COMMAND GETKEYS ECHO a", "(error) ERR The command has no key arguments"},
    {"COMMAND GETKEYS NOSUCH a", "(error) ERR Invalid command specified"},
    {"COMMAND GETKEYS PING", "(error) ERR wrong number of arguments for 'command|getkeys' command"},
    {"CONFIG SET slowlog-max-len 10", "OK"},
    {"CONFIG GET slowlog-max-len", "map[\"slowlog-max-len\", \"10\"]"},
    {"CONFIG GET nothing", "map[]"},
    {"CONFIG SET a", "(error) ERR wrong number of arguments for 'config|set' command"},
};

constexpr CommandTable tables[] = {
    {"server", server},
};

}  // namespace

std::span<const CommandTable> server_tables() { return tables; }

}  // namespace sluice::engine
