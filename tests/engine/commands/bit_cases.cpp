#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase bits[] = {
    {"SETBIT b 7 1", "(integer) 0", "="},
    {"SETBIT b 7 1", "(integer) 1"},
    {"SETBIT b 7 0", "(integer) 1", "="},
    {"SETBIT b 100 0", "(integer) 0", "="},
    {"STRLEN b", "(integer) 13"},
    {"SETBIT b 4294967296 1", "(error) ERR bit offset is not an integer or out of range"},
    {"SETBIT b -1 1", "(error) ERR bit offset is not an integer or out of range"},
    {"SETBIT b 0 2", "(error) ERR bit is not an integer or out of range"},
    {"GETBIT b 1000", "(integer) 0"},
    {"SET s foobar", "OK", "="},
    {"BITCOUNT s", "(integer) 26"},
    {"BITCOUNT s 0 0", "(integer) 4"},
    {"BITCOUNT s 5 30 BIT", "(integer) 17"},
    {"BITCOUNT s -2 -1", "(integer) 7"},
    {"BITCOUNT s 1", "(error) ERR syntax error"},
    {"BITCOUNT s 1 2 FOO", "(error) ERR syntax error"},
    {"BITCOUNT none", "(integer) 0"},
    {"BITPOS s 1", "(integer) 1"},
    {"BITPOS s 0 2", "(integer) 16"},
    {"BITPOS s 1 2 3", "(integer) 17"},
    {"BITPOS s 1 7 15 BIT", "(integer) 9"},
    {"SET f \"\\xff\\xff\"", "OK", "="},
    {"BITPOS f 0", "(integer) 16"},
    {"BITPOS f 0 0 -1", "(integer) -1"},
    {"BITPOS f 0 1", "(integer) 16"},
    {"BITPOS none 1", "(integer) -1"},
    {"BITPOS none 0", "(integer) 0"},
    {"BITPOS s 2", "(error) ERR The bit argument must be 1 or 0."},
    {"SET x \"\\x0f\"", "OK", "="},
    {"SET y \"\\xf0\\xff\"", "OK", "="},
    {"BITOP AND d x y", "(integer) 2", "="},
    {"GET d", "\"\\x00\\x00\""},
    {"BITOP OR d x y", "(integer) 2", "="},
    {"GET d", "\"\\xff\\xff\""},
    {"BITOP XOR d x y none", "(integer) 2", "="},
    {"GET d", "\"\\xff\\xff\""},
    {"BITOP NOT d x", "(integer) 1", "="},
    {"GET d", "\"\\xf0\""},
    {"BITOP NOT d x y", "(error) ERR BITOP NOT must be called with a single source key."},
    {"BITOP FOO d x", "(error) ERR syntax error"},
    {"BITOP AND x none nothing", "(integer) 0", "DEL x"},
    {"EXISTS x", "(integer) 0"},
    {"BITOP AND x none", "(integer) 0"},
};

constexpr CommandCase bitfield[] = {
    {"BITFIELD b SET u8 0 255 GET u4 0 GET i4 0 INCRBY u8 0 1",
     "[(integer) 0, (integer) 15, (integer) -1, (integer) 0]", "="},
    {"BITFIELD b OVERFLOW SAT INCRBY u2 102 5 OVERFLOW FAIL INCRBY u2 102 1",
     "[(integer) 3, (nil)]", "="},
    {"BITFIELD b OVERFLOW SAT INCRBY i8 0 -1000", "[(integer) -128]", "="},
    {"BITFIELD b SET i8 #1 -128 OVERFLOW WRAP INCRBY i8 #1 -1", "[(integer) 0, (integer) 127]",
     "="},
    {"BITFIELD b GET i64 0 SET i64 0 -1 GET u63 1",
     "[(integer) -9187624714812522496, (integer) -9187624714812522496, (integer) "
     "9223372036854775807]",
     "="},
    {"BITFIELD b GET u64 0",
     "(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
     "but i64 is."},
    {"BITFIELD b GET i65 0",
     "(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
     "but i64 is."},
    {"BITFIELD b GET x8 0",
     "(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
     "but i64 is."},
    {"BITFIELD b SET u8 0", "(error) ERR syntax error"},
    {"BITFIELD b SET u8 0 x", "(error) ERR value is not an integer or out of range"},
    {"BITFIELD b OVERFLOW FOO", "(error) ERR Invalid OVERFLOW type specified"},
    {"BITFIELD b GET u8 -1", "(error) ERR bit offset is not an integer or out of range"},
    {"BITFIELD_RO b GET u8 0", "[(integer) 255]"},
    {"BITFIELD_RO b SET u8 0 1", "(error) ERR BITFIELD_RO only supports the GET subcommand"},
    {"BITFIELD none GET u8 0", "[(integer) 0]"},
    {"EXISTS none", "(integer) 0"},
    {"BITFIELD b", "[]"},
};

}  // namespace

std::span<const CommandTable> bit_tables() {
  static constexpr CommandTable tables[] = {
      {"bits", bits},
      {"bitfield", bitfield},
  };
  return tables;
}

}  // namespace sluice::engine
