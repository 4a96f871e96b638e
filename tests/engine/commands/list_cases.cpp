#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase lists[] = {
    {"RPUSH l a b c", "(integer) 3", "="},
    {"LPUSH l z", "(integer) 4", "="},
    {"LPUSHX none a", "(integer) 0"},
    {"RPUSHX l d", "(integer) 5", "="},
    {"LRANGE l 0 -1", "[\"z\", \"a\", \"b\", \"c\", \"d\"]"},
    {"LRANGE l -2 100", "[\"c\", \"d\"]"},
    {"LRANGE l 3 1", "[]"},
    {"LRANGE none 0 -1", "[]"},
    {"LLEN l", "(integer) 5"},
    {"LINDEX l -1", "\"d\""},
    {"LINDEX l 100", "(nil)"},
    {"LINDEX l x", "(error) ERR value is not an integer or out of range"},
    {"LSET l 1 A", "OK", "="},
    {"LSET l 100 x", "(error) ERR index out of range"},
    {"LSET none 0 x", "(error) ERR no such key"},
    {"LINSERT l BEFORE A new", "(integer) 6", "="},
    {"LINSERT l AFTER nothing x", "(integer) -1"},
    {"LINSERT l FOO A x", "(error) ERR syntax error"},
    {"LINSERT none BEFORE a b", "(integer) 0"},
    {"LPOP l", "\"z\"", "="},
    {"RPOP l 2", "[\"d\", \"c\"]", "="},
    {"LPOP l 0", "[]"},
    {"LPOP none", "(nil)"},
    {"LPOP none 1", "(nil)"},
    {"LPOP l -1", "(error) ERR value is out of range, must be positive"},
    {"LPOP l 1 2", "(error) ERR wrong number of arguments for 'lpop' command"},
    {"RPUSH r a b a b a", "(integer) 5", "="},
    {"LREM r 1 a", "(integer) 1", "="},
    {"LREM r -1 a", "(integer) 1", "="},
    {"LREM r 0 b", "(integer) 2", "="},
    {"LREM r 0 nothing", "(integer) 0"},
    {"LRANGE r 0 -1", "[\"a\"]"},
    {"RPUSH t a b c d", "(integer) 4", "="},
    {"LTRIM t 1 2", "OK", "="},
    {"LTRIM t 5 10", "OK", "="},
    {"EXISTS t", "(integer) 0"},
    {"RPUSH p a b c 1 2 3 c c", "(integer) 8", "="},
    {"LPOS p c", "(integer) 2"},
    {"LPOS p c RANK 2", "(integer) 6"},
    {"LPOS p c RANK -1", "(integer) 7"},
    {"LPOS p c COUNT 0", "[(integer) 2, (integer) 6, (integer) 7]"},
    {"LPOS p c COUNT 2 RANK -1", "[(integer) 7, (integer) 6]"},
    {"LPOS p c MAXLEN 2", "(nil)"},
    {"LPOS p none", "(nil)"},
    {"LPOS p none COUNT 1", "[]"},
    {"LPOS p c RANK 0",
     "(error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
     "or use negative to start from the end of the list"},
    {"LPOS p c COUNT -1", "(error) ERR COUNT can't be negative"},
    {"LPOS p c FOO 1", "(error) ERR syntax error"},
    {"SET s v", "OK", "="},
    {"LPUSH s a", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"LLEN s", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
};

constexpr CommandCase moves[] = {
    {"RPUSH a 1 2 3", "(integer) 3", "="},
    {"LMOVE a b LEFT RIGHT", "\"1\"", "="},
    {"LMOVE a a RIGHT LEFT", "\"3\"", "="},
    {"LMOVE none b LEFT LEFT", "(nil)"},
    {"LMOVE a b FOO LEFT", "(error) ERR syntax error"},
    {"RPOPLPUSH a b", "\"2\"", "="},
    {"RPOPLPUSH none b", "(nil)"},
    {"LRANGE b 0 -1", "[\"2\", \"1\"]"},
    {"LMPOP 2 none b LEFT COUNT 5", "[\"b\", [\"2\", \"1\"]]", "LPOP b 2"},
    {"LMPOP 1 none LEFT", "(nil)"},
    {"LMPOP 0 a LEFT", "(error) ERR numkeys should be greater than 0"},
    {"LMPOP 1 a FOO", "(error) ERR syntax error"},
    {"LMPOP 1 a LEFT COUNT 0", "(error) ERR count should be greater than 0"},
    {"LMPOP x a LEFT", "(error) ERR numkeys should be greater than 0"},
    {"RPUSH q 1 2", "(integer) 2", "="},
    {"BLPOP q 0", "[\"q\", \"1\"]", "LPOP q"},
    {"BRPOP none q 1", "[\"q\", \"2\"]", "RPOP q"},
    {"RPUSH q 1 2", "(integer) 2", "="},
    {"BLMOVE q other LEFT RIGHT 0", "\"1\"", "LMOVE q other LEFT RIGHT"},
    {"BRPOPLPUSH q other 0", "\"2\"", "RPOPLPUSH q other"},
    {"RPUSH q 1 2", "(integer) 2", "="},
    {"BLMPOP 0 2 none q LEFT COUNT 10", "[\"q\", [\"1\", \"2\"]]", "LPOP q 2"},
    {"BLPOP q -1", "(error) ERR timeout is negative"},
    {"BLPOP q x", "(error) ERR timeout is not a float or out of range"},
    {"SET s v", "OK", "="},
    {"BLPOP s 0", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"LMOVE other s LEFT LEFT",
     "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
};

}  // namespace

std::span<const CommandTable> list_tables() {
  static constexpr CommandTable tables[] = {
      {"lists", lists},
      {"moves", moves},
  };
  return tables;
}

}  // namespace sluice::engine
