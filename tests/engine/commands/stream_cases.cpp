// Streams and their groups.
#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase streams[] = {
    {"XADD s 1-1 a b", R"("1-1")", "="},
    {"XADD s 1-1 a b",
     "(error) ERR The ID specified in XADD is equal or smaller than the target stream top item"},
    {"XADD s 0-0 a b", "(error) ERR The ID specified in XADD must be greater than 0-0"},
    {"XADD s 0-1 a b",
     "(error) ERR The ID specified in XADD is equal or smaller than the target stream top item"},
    {"XADD s 1-* a b", R"("1-2")", "XADD s 1-2 a b"},
    {"XADD s 1-* a c d e", R"("1-3")", "XADD s 1-3 a c d e"},
    {"XADD s 5 a b", R"("5-0")", "="},
    {"XADD s 5- a b", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XADD s x a b", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XADD s 1-2-3 a b", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XADD s - a b", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XADD s * a", "(error) ERR wrong number of arguments for 'xadd' command"},
    {"XADD s * a b c", "(error) ERR wrong number of arguments for 'xadd' command"},
    {"XADD s *", "(error) ERR wrong number of arguments for 'xadd' command"},
    {"XADD s", "(error) ERR wrong number of arguments for 'xadd' command"},
    {"XADD s 7-* a 1", R"("7-0")", "XADD s 7-0 a 1"},
    {"XADD s 7-* a 2", R"("7-1")", "XADD s 7-1 a 2"},
    {"XADD s 6-* a 2",
     "(error) ERR The ID specified in XADD is equal or smaller than the target stream top item"},
    {"XADD s 1-1-* a 2", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XADD nos nomkstream 1-1 a b", "(nil)"},
    {"XADD s maxlen 3 8-1 a b", R"("8-1")", "XADD s MAXLEN = 3 8-1 a b"},
    {"XADD s maxlen ~ 3 8-2 a b", R"("8-2")", "XADD s MAXLEN = 4 8-2 a b"},
    {"XADD s maxlen -1 8-3 a b", "(error) ERR The MAXLEN argument must be >= 0."},
    {"XADD s maxlen x 8-3 a b", "(error) ERR value is not an integer or out of range"},
    {"XADD s maxlen = 4 limit 3 8-3 a b",
     "(error) ERR syntax error, LIMIT cannot be used without the special ~ option"},
    {"XADD s maxlen ~ 4 limit -3 8-3 a b", "(error) ERR The LIMIT argument must be >= 0."},
    {"XADD s limit 3 8-3 a b",
     "(error) ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"},
    {"XADD s maxlen 3 minid 3 8-3 a b",
     "(error) ERR syntax error, MAXLEN and MINID options at the same time are not compatible"},
    {"XADD s minid 8-1 8-3 a b", R"("8-3")", "XADD s MINID = 8-1 8-3 a b"},
    {"XLEN s", "(integer) 3"},
    {"XRANGE s - +", R"([["8-1", ["a", "b"]], ["8-2", ["a", "b"]], ["8-3", ["a", "b"]]])"},
    {"XREVRANGE s + -", R"([["8-3", ["a", "b"]], ["8-2", ["a", "b"]], ["8-1", ["a", "b"]]])"},
    {"XRANGE s (8-1 +", R"([["8-2", ["a", "b"]], ["8-3", ["a", "b"]]])"},
    {"XRANGE s (8-1 (8-3", R"([["8-2", ["a", "b"]]])"},
    {"XRANGE s 8 8", R"([["8-1", ["a", "b"]], ["8-2", ["a", "b"]], ["8-3", ["a", "b"]]])"},
    {"XRANGE s - + count 1", R"([["8-1", ["a", "b"]]])"},
    {"XRANGE s - + count 0", "(nil)"},
    {"XRANGE s - + count -1", "(nil)"},
    {"XRANGE s - + count", "(error) ERR syntax error"},
    {"XRANGE s - + foo 1", "(error) ERR syntax error"},
    {"XRANGE s - (-", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XRANGE s (18446744073709551615-18446744073709551615 +",
     "(error) ERR invalid start ID for the interval"},
    {"XRANGE s - (0-0", "(error) ERR invalid end ID for the interval"},
    {"XRANGE s x +", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XRANGE nos - +", "[]"},
    {"SET str x", "OK", "="},
    {"XRANGE str - +", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"XADD str * a b", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"XLEN str", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"XREAD streams str 0",
     "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {"XDEL s 8-2 9-9", "(integer) 1", "="},
    {"XDEL s x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XDEL nos 1-1", "(integer) 0"},
    {"XDEL nos x", "(integer) 0"},
    {"XINFO STREAM s",
     R"(map["length", (integer) 2, "radix-tree-keys", (integer) 1, "radix-tree-nodes", )"
     R"((integer) 2, "last-generated-id", "8-3", "max-deleted-entry-id", "8-2", )"
     R"("entries-added", (integer) 9, "recorded-first-entry-id", "8-1", "groups", (integer) 0, )"
     R"("first-entry", ["8-1", ["a", "b"]], "last-entry", ["8-3", ["a", "b"]]])"},
    {"XTRIM s maxlen 1", "(integer) 1", "="},
    {"XTRIM s minid 100", "(integer) 1", "="},
    {"XTRIM s maxlen ~ 0", "(integer) 0"},
    {"XTRIM s", "(error) ERR wrong number of arguments for 'xtrim' command"},
    {"XTRIM s maxlen", "(error) ERR wrong number of arguments for 'xtrim' command"},
    {"XTRIM s foo 1", "(error) ERR syntax error"},
    {"XTRIM s maxlen 1 limit 1",
     "(error) ERR syntax error, LIMIT cannot be used without the special ~ option"},
    {"XTRIM s limit 1",
     "(error) ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"},
    {"XTRIM nos maxlen 1", "(integer) 0"},
    {"XINFO STREAM s",
     R"(map["length", (integer) 0, "radix-tree-keys", (integer) 0, "radix-tree-nodes", )"
     R"((integer) 1, "last-generated-id", "8-3", "max-deleted-entry-id", "8-2", )"
     R"("entries-added", (integer) 9, "recorded-first-entry-id", "0-0", "groups", (integer) 0, )"
     R"("first-entry", (nil), "last-entry", (nil)])"},
};

constexpr CommandCase stream_groups[] = {
    {"XADD s 20-1 a b c d", R"("20-1")", "="},
    {"XADD s 20-2 a b c d", R"("20-2")", "="},
    {"XADD s 20-3 x y", R"("20-3")", "="},
    {"XGROUP CREATE s g 0", "OK", "="},
    {"XGROUP CREATE s g 0", "(error) BUSYGROUP Consumer Group name already exists"},
    {"XGROUP CREATE nos g 0",
     "(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may "
     "want to use the MKSTREAM option to create an empty stream automatically."},
    {"XGROUP CREATE ms g $ mkstream", "OK", "="},
    {"XGROUP CREATE s g2 $", "OK", "="},
    {"XGROUP CREATE s g3 x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XGROUP CREATE s g3 20-1 entriesread 3", "OK", "="},
    {"XGROUP CREATE s g4 20-1 entriesread -3",
     "(error) ERR value for ENTRIESREAD must be positive or -1"},
    {"XGROUP CREATE s g4 20-1 foo",
     "(error) ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP."},
    {"XGROUP CREATE str g4 20-1",
     "(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may "
     "want to use the MKSTREAM option to create an empty stream automatically."},
    {"XGROUP CREATE s g", "(error) ERR wrong number of arguments for 'xgroup|create' command"},
    {"XGROUP FOO s g", "(error) ERR unknown subcommand 'FOO'. Try XGROUP HELP."},
    {"XGROUP", "(error) ERR wrong number of arguments for 'xgroup' command"},
    {"XINFO GROUPS s",
     R"([map["name", "g", "consumers", (integer) 0, "pending", (integer) 0, )"
     R"("last-delivered-id", "0-0", "entries-read", (nil), "lag", (integer) 3], map["name", )"
     R"("g2", "consumers", (integer) 0, "pending", (integer) 0, "last-delivered-id", "20-3", )"
     R"("entries-read", (nil), "lag", (integer) 0], map["name", "g3", "consumers", (integer) 0, )"
     R"("pending", (integer) 0, "last-delivered-id", "20-1", "entries-read", (integer) 3, )"
     R"("lag", (integer) 0]])"},
    {"XREADGROUP group g c1 count 2 streams s >",
     R"(map["s", [["20-1", ["a", "b", "c", "d"]], ["20-2", ["a", "b", "c", "d"]]]])",
     "XGROUP CREATECONSUMER s g c1; XCLAIM s g c1 0 20-1 20-2 TIME 1700000000000 RETRYCOUNT 1 "
     "FORCE JUSTID LASTID 20-2; XGROUP SETID s g 20-2 ENTRIESREAD 2"},
    {"XREADGROUP group g c2 streams s >", R"(map["s", [["20-3", ["x", "y"]]]])",
     "XGROUP CREATECONSUMER s g c2; XCLAIM s g c2 0 20-3 TIME 1700000000000 RETRYCOUNT 1 FORCE "
     "JUSTID LASTID 20-3; XGROUP SETID s g 20-3 ENTRIESREAD 3"},
    {"XREADGROUP group g c2 streams s >", "(nil)"},
    {"XREADGROUP group g c1 streams s 0",
     R"(map["s", [["20-1", ["a", "b", "c", "d"]], ["20-2", ["a", "b", "c", "d"]]]])"},
    {"XREADGROUP group g c1 streams s 20-1", R"(map["s", [["20-2", ["a", "b", "c", "d"]]]])"},
    {"XREADGROUP group g c3 streams s 0", R"(map["s", []])", "XGROUP CREATECONSUMER s g c3"},
    {"XREADGROUP group g c1 count 1 streams s 0", R"(map["s", [["20-1", ["a", "b", "c", "d"]]]])"},
    {"XREADGROUP group nog c1 streams s >",
     "(error) NOGROUP No such key 's' or consumer group 'nog' in XREADGROUP with GROUP option"},
    {"XREADGROUP group g c1 streams nos >",
     "(error) NOGROUP No such key 'nos' or consumer group 'g' in XREADGROUP with GROUP option"},
    {"XREADGROUP group g c1 streams s $",
     "(error) ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the "
     "history of this consumer by specifying a proper ID, or use the > ID to get new messages. The "
     "$ ID would just return an empty result set."},
    {"XREADGROUP group g c1 streams s x",
     "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XREADGROUP group g streams s x",
     "(error) ERR wrong number of arguments for 'xreadgroup' command"},
    {"XREADGROUP streams s > a b c",
     "(error) ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
     "specified."},
    {"XREADGROUP count 1 count 2 streams s >", "(error) ERR Missing GROUP option for XREADGROUP"},
    {"XREADGROUP group g c1 streams s s >",
     "(error) ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
     "specified."},
    {"XREAD streams s s 0",
     "(error) ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
     "specified."},
    {"XREAD streams s >",
     "(error) ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
     "<consumer> option."},
    {"XREAD streams s $", "(nil)"},
    {"XREAD streams s 0",
     R"(map["s", [["20-1", ["a", "b", "c", "d"]], ["20-2", ["a", "b", "c", "d"]], ["20-3", )"
     R"(["x", "y"]]]])"},
    {"XREAD count 1 streams s 0", R"(map["s", [["20-1", ["a", "b", "c", "d"]]]])"},
    {"XREAD count 0 streams s 0",
     R"(map["s", [["20-1", ["a", "b", "c", "d"]], ["20-2", ["a", "b", "c", "d"]], ["20-3", )"
     R"(["x", "y"]]]])"},
    {"XREAD count -1 streams s 20-2", R"(map["s", [["20-3", ["x", "y"]]]])"},
    {"XREAD count x streams s 20-2", "(error) ERR value is not an integer or out of range"},
    {"XREAD block x streams s 20-2", "(error) ERR timeout is not an integer or out of range"},
    {"XREAD block -1 streams s 20-2", "(error) ERR timeout is negative"},
    {"XREAD streams s nos 20-2 0", R"(map["s", [["20-3", ["x", "y"]]]])"},
    {"XREAD streams s s 20-2 0",
     R"(map["s", [["20-3", ["x", "y"]]], "s", [["20-1", ["a", "b", "c", "d"]], ["20-2", ["a", )"
     R"("b", "c", "d"]], ["20-3", ["x", "y"]]]])"},
    {"XREAD streams nos 0", "(nil)"},
    {"XREAD group g c streams s 0",
     "(error) ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."},
    {"XREAD noack streams s 0",
     "(error) ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."},
    {"XREAD foo bar s 0", "(error) ERR syntax error"},
    {"XREAD streams s 18446744073709551615-18446744073709551615", "(nil)"},
    {"XINFO GROUPS s",
     R"([map["name", "g", "consumers", (integer) 3, "pending", (integer) 3, )"
     R"("last-delivered-id", "20-3", "entries-read", (integer) 3, "lag", (integer) 0], )"
     R"(map["name", "g2", "consumers", (integer) 0, "pending", (integer) 0, )"
     R"("last-delivered-id", "20-3", "entries-read", (nil), "lag", (integer) 0], map["name", )"
     R"("g3", "consumers", (integer) 0, "pending", (integer) 0, "last-delivered-id", "20-1", )"
     R"("entries-read", (integer) 3, "lag", (integer) 0]])"},
    {"XPENDING s g", R"([(integer) 3, "20-1", "20-3", [["c1", "2"], ["c2", "1"]]])"},
    {"XPENDING s g (20-1 + 10 nobody", "[]"},
    {"XPENDING s g idle 1000000 - + 10", "[]"},
    {"XPENDING s g - +", "(error) ERR syntax error"},
    {"XPENDING s g - + x", "(error) ERR value is not an integer or out of range"},
    {"XPENDING s g idle", "(error) ERR syntax error"},
    {"XPENDING s g2", "[(integer) 0, (nil), (nil), (nil)]"},
    {"XPENDING s nog", "(error) NOGROUP No such key 's' or consumer group 'nog'"},
    {"XPENDING nos g", "(error) NOGROUP No such key 'nos' or consumer group 'g'"},
    {"XPENDING str g", "(error) NOGROUP No such key 'str' or consumer group 'g'"},
    {"XPENDING s g - + 0", "[]"},
    {"XPENDING s g - + -1", "[]"},
    {"XACK s g 20-1 20-9", "(integer) 1", "="},
    {"XACK s nog 20-1", "(integer) 0"},
    {"XACK nos g 20-1", "(integer) 0"},
    {"XACK s g x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XACK s g", "(error) ERR wrong number of arguments for 'xack' command"},
    {"XACK str g 1", "(integer) 0"},
    {"XDEL s 20-2", "(integer) 1", "="},
    {"XREADGROUP group g c1 streams s 0", R"(map["s", [["20-2", (nil)]]])"},
    {"XCLAIM s g c3 0 20-3", R"([["20-3", ["x", "y"]]])",
     "XCLAIM s g c3 0 20-3 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 20-3"},
    {"XCLAIM s g c3 0 20-3 justid", R"(["20-3"])",
     "XCLAIM s g c3 0 20-3 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 20-3"},
    {"XCLAIM s g c3 100000 20-3 justid", "[]"},
    {"XCLAIM s g c3 0 20-2", "[]", "XACK s g 20-2"},
    {"XCLAIM s g c3 0 99-1 force", "[]"},
    {"XCLAIM s g c4 0 20-1 force retrycount 7 justid", R"(["20-1"])",
     "XGROUP CREATECONSUMER s g c4; XCLAIM s g c4 0 20-1 TIME 1700000000000 RETRYCOUNT 7 FORCE "
     "JUSTID LASTID 20-3"},
    {"XCLAIM s g c4 0 20-1 idle 5 lastid 20-3", R"([["20-1", ["a", "b", "c", "d"]]])",
     "XCLAIM s g c4 0 20-1 TIME 1699999999995 RETRYCOUNT 8 FORCE JUSTID LASTID 20-3"},
    {"XCLAIM s g c4 0 20-1 time x", "(error) ERR Invalid TIME option argument for XCLAIM"},
    {"XCLAIM s g c4 0 20-1 idle x", "(error) ERR Invalid IDLE option argument for XCLAIM"},
    {"XCLAIM s g c4 0 20-1 retrycount x",
     "(error) ERR Invalid RETRYCOUNT option argument for XCLAIM"},
    {"XCLAIM s g c4 x 20-1", "(error) ERR Invalid min-idle-time argument for XCLAIM"},
    {"XCLAIM s g c4 0 x", "(error) ERR Unrecognized XCLAIM option 'x'"},
    {"XCLAIM s g c4 0 20-1 foo", "(error) ERR Unrecognized XCLAIM option 'foo'"},
    {"XCLAIM s nog c4 0 20-1", "(error) NOGROUP No such key 's' or consumer group 'nog'"},
    {"XCLAIM nos g c4 0 20-1", "(error) NOGROUP No such key 'nos' or consumer group 'g'"},
    {"XCLAIM s g c4", "(error) ERR wrong number of arguments for 'xclaim' command"},
    {"XCLAIM s g c4 -5 20-1 justid", R"(["20-1"])",
     "XCLAIM s g c4 0 20-1 TIME 1700000000000 RETRYCOUNT 8 FORCE JUSTID LASTID 20-3"},
    {"XAUTOCLAIM s g c5 0 0",
     R"(["0-0", [["20-1", ["a", "b", "c", "d"]], ["20-3", ["x", "y"]]], []])",
     "XGROUP CREATECONSUMER s g c5; XCLAIM s g c5 0 20-1 TIME 1700000000000 RETRYCOUNT 9 FORCE "
     "JUSTID LASTID 20-3; XCLAIM s g c5 0 20-3 TIME 1700000000000 RETRYCOUNT 3 FORCE JUSTID LASTID "
     "20-3"},
    {"XAUTOCLAIM s g c5 0 0 count 1", R"(["20-3", [["20-1", ["a", "b", "c", "d"]]], []])",
     "XCLAIM s g c5 0 20-1 TIME 1700000000000 RETRYCOUNT 10 FORCE JUSTID LASTID 20-3"},
    {"XAUTOCLAIM s g c5 0 20-2 count 1 justid", R"(["0-0", ["20-3"], []])",
     "XCLAIM s g c5 0 20-3 TIME 1700000000000 RETRYCOUNT 3 FORCE JUSTID LASTID 20-3"},
    {"XAUTOCLAIM s g c5 0 0 count 0", "(error) ERR COUNT must be > 0"},
    {"XAUTOCLAIM s g c5 0 0 count x", "(error) ERR COUNT must be > 0"},
    {"XAUTOCLAIM s g c5 x 0", "(error) ERR Invalid min-idle-time argument for XAUTOCLAIM"},
    {"XAUTOCLAIM s g c5 0 x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XAUTOCLAIM s g c5 0 0 foo", "(error) ERR syntax error"},
    {"XAUTOCLAIM s nog c5 0 0", "(error) NOGROUP No such key 's' or consumer group 'nog'"},
    {"XAUTOCLAIM s g c5 100000 - count 1", R"(["0-0", [], []])"},
    {"XAUTOCLAIM s g c5 0 (20-1", R"(["0-0", [["20-3", ["x", "y"]]], []])",
     "XCLAIM s g c5 0 20-3 TIME 1700000000000 RETRYCOUNT 4 FORCE JUSTID LASTID 20-3"},
    {"XGROUP CREATECONSUMER s g c9", "(integer) 1", "="},
    {"XGROUP CREATECONSUMER s g c9", "(integer) 0"},
    {"XGROUP CREATECONSUMER s nog c9",
     "(error) NOGROUP No such consumer group 'nog' for key name 's'"},
    {"XGROUP CREATECONSUMER nos nog c9",
     "(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may "
     "want to use the MKSTREAM option to create an empty stream automatically."},
    {"XGROUP DELCONSUMER s g c5", "(integer) 2", "="},
    {"XGROUP DELCONSUMER s g nobody", "(integer) 0"},
    {"XGROUP DELCONSUMER s nog nobody",
     "(error) NOGROUP No such consumer group 'nog' for key name 's'"},
    {"XGROUP SETID s g 20-1", "OK", "="},
    {"XGROUP SETID s g $", "OK", "="},
    {"XGROUP SETID s g 0 entriesread 5", "OK", "="},
    {"XGROUP SETID s nog 0", "(error) NOGROUP No such consumer group 'nog' for key name 's'"},
    {"XGROUP SETID s g 0 foo 1",
     "(error) ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP."},
    {"XGROUP SETID s g x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XINFO GROUPS s",
     R"([map["name", "g", "consumers", (integer) 5, "pending", (integer) 0, )"
     R"("last-delivered-id", "0-0", "entries-read", (integer) 5, "lag", (nil)], map["name", )"
     R"("g2", "consumers", (integer) 0, "pending", (integer) 0, "last-delivered-id", "20-3", )"
     R"("entries-read", (nil), "lag", (integer) 0], map["name", "g3", "consumers", (integer) 0, )"
     R"("pending", (integer) 0, "last-delivered-id", "20-1", "entries-read", (integer) 3, )"
     R"("lag", (nil)]])"},
    {"XGROUP DESTROY s g2", "(integer) 1", "="},
    {"XGROUP DESTROY s g2", "(integer) 0"},
    {"XGROUP DESTROY nos g2",
     "(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may "
     "want to use the MKSTREAM option to create an empty stream automatically."},
    {"XINFO STREAM nos", "(error) ERR no such key"},
    {"XINFO STREAM s foo",
     "(error) ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."},
    {"XINFO STREAM s full count",
     "(error) ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."},
    {"XINFO STREAM s full count x", "(error) ERR value is not an integer or out of range"},
    {"XINFO GROUPS nos", "(error) ERR no such key"},
    {"XINFO CONSUMERS s nog", "(error) NOGROUP No such consumer group 'nog' for key name 's'"},
    {"XINFO CONSUMERS nos nog", "(error) ERR no such key"},
    {"XINFO FOO s", "(error) ERR unknown subcommand 'FOO'. Try XINFO HELP."},
    {"XINFO", "(error) ERR wrong number of arguments for 'xinfo' command"},
    {"XSETID s 100-0", "OK", "="},
    {"XSETID s 1-0",
     "(error) ERR The ID specified in XSETID is smaller than the target stream top item"},
    {"XSETID nos 1-0", "(error) ERR no such key"},
    {"XSETID s x", "(error) ERR Invalid stream ID specified as stream command argument"},
    {"XSETID s 200-0 entriesadded 50 maxdeletedid 30-0", "OK", "="},
    {"XSETID s 200-0 entriesadded 0 maxdeletedid 30-0",
     "(error) ERR The entries_added specified in XSETID is smaller than the target stream length"},
    {"XSETID s 200-0 entriesadded 1",
     "(error) ERR The entries_added specified in XSETID is smaller than the target stream length"},
    {"XSETID s 200-0 entriesadded -1 maxdeletedid 30-0",
     "(error) ERR entries_added must be positive"},
    {"XSETID s 200-0 entriesadded 10 maxdeletedid 300-0",
     "(error) ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"},
    {"XSETID s 25-0", "OK", "="},
    {"XSETID s 200-0 foo 1", "(error) ERR syntax error"},
    {"XINFO STREAM s",
     R"(map["length", (integer) 2, "radix-tree-keys", (integer) 1, "radix-tree-nodes", )"
     R"((integer) 2, "last-generated-id", "25-0", "max-deleted-entry-id", "30-0", )"
     R"("entries-added", (integer) 50, "recorded-first-entry-id", "20-1", "groups", (integer) )"
     R"(2, "first-entry", ["20-1", ["a", "b", "c", "d"]], "last-entry", ["20-3", ["x", "y"]]])"},
    {"XADD s 18446744073709551615-18446744073709551615 a b",
     R"("18446744073709551615-18446744073709551615")", "="},
    {"XADD s * a b",
     "(error) ERR The stream has exhausted the last possible ID, unable to add more items"},
    {"XADD s 18446744073709551615-* a b",
     "(error) ERR The stream has exhausted the last possible ID, unable to add more items"},
    {"XADD t 18446744073709551614-18446744073709551615 a b",
     R"("18446744073709551614-18446744073709551615")", "="},
    {"XADD t * a b", R"("18446744073709551615-0")", "XADD t 18446744073709551615-0 a b"},
    {"XREAD streams t 0", R"(map["t", [["18446744073709551614-18446744073709551615", ["a", "b"]], )"
                          R"(["18446744073709551615-0", ["a", "b"]]]])"},
    {"TYPE s", "stream"},
    {"OBJECT encoding s", R"("stream")"},
    {"DEL s", "(integer) 1", "="},
};

constexpr CommandCase stream_trimming[] = {
    {R"x(EVAL "for i=1,350 do redis.call(\"xadd\",\"big\",i..\"-1\",\"f\",i,\"g\",i*2) end )x"
     R"x(return redis.call(\"xlen\",\"big\")" 0)x",
     "(integer) 350",
     "xadd big 1-1 f 1 g 2; xadd big 2-1 f 2 g 4; xadd big 3-1 f 3 g 6; xadd big 4-1 f 4 g 8; xadd "
     "big 5-1 f 5 g 10; xadd big 6-1 f 6 g 12; xadd big 7-1 f 7 g 14; xadd big 8-1 f 8 g 16; xadd "
     "big 9-1 f 9 g 18; xadd big 10-1 f 10 g 20; xadd big 11-1 f 11 g 22; xadd big 12-1 f 12 g 24; "
     "xadd big 13-1 f 13 g 26; xadd big 14-1 f 14 g 28; xadd big 15-1 f 15 g 30; xadd big 16-1 f "
     "16 g 32; xadd big 17-1 f 17 g 34; xadd big 18-1 f 18 g 36; xadd big 19-1 f 19 g 38; xadd big "
     "20-1 f 20 g 40; xadd big 21-1 f 21 g 42; xadd big 22-1 f 22 g 44; xadd big 23-1 f 23 g 46; "
     "xadd big 24-1 f 24 g 48; xadd big 25-1 f 25 g 50; xadd big 26-1 f 26 g 52; xadd big 27-1 f "
     "27 g 54; xadd big 28-1 f 28 g 56; xadd big 29-1 f 29 g 58; xadd big 30-1 f 30 g 60; xadd big "
     "31-1 f 31 g 62; xadd big 32-1 f 32 g 64; xadd big 33-1 f 33 g 66; xadd big 34-1 f 34 g 68; "
     "xadd big 35-1 f 35 g 70; xadd big 36-1 f 36 g 72; xadd big 37-1 f 37 g 74; xadd big 38-1 f "
     "38 g 76; xadd big 39-1 f 39 g 78; xadd big 40-1 f 40 g 80; xadd big 41-1 f 41 g 82; xadd big "
     "42-1 f 42 g 84; xadd big 43-1 f 43 g 86; xadd big 44-1 f 44 g 88; xadd big 45-1 f 45 g 90; "
     "xadd big 46-1 f 46 g 92; xadd big 47-1 f 47 g 94; xadd big 48-1 f 48 g 96; xadd big 49-1 f "
     "49 g 98; xadd big 50-1 f 50 g 100; xadd big 51-1 f 51 g 102; xadd big 52-1 f 52 g 104; xadd "
     "big 53-1 f 53 g 106; xadd big 54-1 f 54 g 108; xadd big 55-1 f 55 g 110; xadd big 56-1 f 56 "
     "g 112; xadd big 57-1 f 57 g 114; xadd big 58-1 f 58 g 116; xadd big 59-1 f 59 g 118; xadd "
     "big 60-1 f 60 g 120; xadd big 61-1 f 61 g 122; xadd big 62-1 f 62 g 124; xadd big 63-1 f 63 "
     "g 126; xadd big 64-1 f 64 g 128; xadd big 65-1 f 65 g 130; xadd big 66-1 f 66 g 132; xadd "
     "big 67-1 f 67 g 134; xadd big 68-1 f 68 g 136; xadd big 69-1 f 69 g 138; xadd big 70-1 f 70 "
     "g 140; xadd big 71-1 f 71 g 142; xadd big 72-1 f 72 g 144; xadd big 73-1 f 73 g 146; xadd "
     "big 74-1 f 74 g 148; xadd big 75-1 f 75 g 150; xadd big 76-1 f 76 g 152; xadd big 77-1 f 77 "
     "g 154; xadd big 78-1 f 78 g 156; xadd big 79-1 f 79 g 158; xadd big 80-1 f 80 g 160; xadd "
     "big 81-1 f 81 g 162; xadd big 82-1 f 82 g 164; xadd big 83-1 f 83 g 166; xadd big 84-1 f 84 "
     "g 168; xadd big 85-1 f 85 g 170; xadd big 86-1 f 86 g 172; xadd big 87-1 f 87 g 174; xadd "
     "big 88-1 f 88 g 176; xadd big 89-1 f 89 g 178; xadd big 90-1 f 90 g 180; xadd big 91-1 f 91 "
     "g 182; xadd big 92-1 f 92 g 184; xadd big 93-1 f 93 g 186; xadd big 94-1 f 94 g 188; xadd "
     "big 95-1 f 95 g 190; xadd big 96-1 f 96 g 192; xadd big 97-1 f 97 g 194; xadd big 98-1 f 98 "
     "g 196; xadd big 99-1 f 99 g 198; xadd big 100-1 f 100 g 200; xadd big 101-1 f 101 g 202; "
     "xadd big 102-1 f 102 g 204; xadd big 103-1 f 103 g 206; xadd big 104-1 f 104 g 208; xadd big "
     "105-1 f 105 g 210; xadd big 106-1 f 106 g 212; xadd big 107-1 f 107 g 214; xadd big 108-1 f "
     "108 g 216; xadd big 109-1 f 109 g 218; xadd big 110-1 f 110 g 220; xadd big 111-1 f 111 g "
     "222; xadd big 112-1 f 112 g 224; xadd big 113-1 f 113 g 226; xadd big 114-1 f 114 g 228; "
     "xadd big 115-1 f 115 g 230; xadd big 116-1 f 116 g 232; xadd big 117-1 f 117 g 234; xadd big "
     "118-1 f 118 g 236; xadd big 119-1 f 119 g 238; xadd big 120-1 f 120 g 240; xadd big 121-1 f "
     "121 g 242; xadd big 122-1 f 122 g 244; xadd big 123-1 f 123 g 246; xadd big 124-1 f 124 g "
     "248; xadd big 125-1 f 125 g 250; xadd big 126-1 f 126 g 252; xadd big 127-1 f 127 g 254; "
     "xadd big 128-1 f 128 g 256; xadd big 129-1 f 129 g 258; xadd big 130-1 f 130 g 260; xadd big "
     "131-1 f 131 g 262; xadd big 132-1 f 132 g 264; xadd big 133-1 f 133 g 266; xadd big 134-1 f "
     "134 g 268; xadd big 135-1 f 135 g 270; xadd big 136-1 f 136 g 272; xadd big 137-1 f 137 g "
     "274; xadd big 138-1 f 138 g 276; xadd big 139-1 f 139 g 278; xadd big 140-1 f 140 g 280; "
     "xadd big 141-1 f 141 g 282; xadd big 142-1 f 142 g 284; xadd big 143-1 f 143 g 286; xadd big "
     "144-1 f 144 g 288; xadd big 145-1 f 145 g 290; xadd big 146-1 f 146 g 292; xadd big 147-1 f "
     "147 g 294; xadd big 148-1 f 148 g 296; xadd big 149-1 f 149 g 298; xadd big 150-1 f 150 g "
     "300; xadd big 151-1 f 151 g 302; xadd big 152-1 f 152 g 304; xadd big 153-1 f 153 g 306; "
     "xadd big 154-1 f 154 g 308; xadd big 155-1 f 155 g 310; xadd big 156-1 f 156 g 312; xadd big "
     "157-1 f 157 g 314; xadd big 158-1 f 158 g 316; xadd big 159-1 f 159 g 318; xadd big 160-1 f "
     "160 g 320; xadd big 161-1 f 161 g 322; xadd big 162-1 f 162 g 324; xadd big 163-1 f 163 g "
     "326; xadd big 164-1 f 164 g 328; xadd big 165-1 f 165 g 330; xadd big 166-1 f 166 g 332; "
     "xadd big 167-1 f 167 g 334; xadd big 168-1 f 168 g 336; xadd big 169-1 f 169 g 338; xadd big "
     "170-1 f 170 g 340; xadd big 171-1 f 171 g 342; xadd big 172-1 f 172 g 344; xadd big 173-1 f "
     "173 g 346; xadd big 174-1 f 174 g 348; xadd big 175-1 f 175 g 350; xadd big 176-1 f 176 g "
     "352; xadd big 177-1 f 177 g 354; xadd big 178-1 f 178 g 356; xadd big 179-1 f 179 g 358; "
     "xadd big 180-1 f 180 g 360; xadd big 181-1 f 181 g 362; xadd big 182-1 f 182 g 364; xadd big "
     "183-1 f 183 g 366; xadd big 184-1 f 184 g 368; xadd big 185-1 f 185 g 370; xadd big 186-1 f "
     "186 g 372; xadd big 187-1 f 187 g 374; xadd big 188-1 f 188 g 376; xadd big 189-1 f 189 g "
     "378; xadd big 190-1 f 190 g 380; xadd big 191-1 f 191 g 382; xadd big 192-1 f 192 g 384; "
     "xadd big 193-1 f 193 g 386; xadd big 194-1 f 194 g 388; xadd big 195-1 f 195 g 390; xadd big "
     "196-1 f 196 g 392; xadd big 197-1 f 197 g 394; xadd big 198-1 f 198 g 396; xadd big 199-1 f "
     "199 g 398; xadd big 200-1 f 200 g 400; xadd big 201-1 f 201 g 402; xadd big 202-1 f 202 g "
     "404; xadd big 203-1 f 203 g 406; xadd big 204-1 f 204 g 408; xadd big 205-1 f 205 g 410; "
     "xadd big 206-1 f 206 g 412; xadd big 207-1 f 207 g 414; xadd big 208-1 f 208 g 416; xadd big "
     "209-1 f 209 g 418; xadd big 210-1 f 210 g 420; xadd big 211-1 f 211 g 422; xadd big 212-1 f "
     "212 g 424; xadd big 213-1 f 213 g 426; xadd big 214-1 f 214 g 428; xadd big 215-1 f 215 g "
     "430; xadd big 216-1 f 216 g 432; xadd big 217-1 f 217 g 434; xadd big 218-1 f 218 g 436; "
     "xadd big 219-1 f 219 g 438; xadd big 220-1 f 220 g 440; xadd big 221-1 f 221 g 442; xadd big "
     "222-1 f 222 g 444; xadd big 223-1 f 223 g 446; xadd big 224-1 f 224 g 448; xadd big 225-1 f "
     "225 g 450; xadd big 226-1 f 226 g 452; xadd big 227-1 f 227 g 454; xadd big 228-1 f 228 g "
     "456; xadd big 229-1 f 229 g 458; xadd big 230-1 f 230 g 460; xadd big 231-1 f 231 g 462; "
     "xadd big 232-1 f 232 g 464; xadd big 233-1 f 233 g 466; xadd big 234-1 f 234 g 468; xadd big "
     "235-1 f 235 g 470; xadd big 236-1 f 236 g 472; xadd big 237-1 f 237 g 474; xadd big 238-1 f "
     "238 g 476; xadd big 239-1 f 239 g 478; xadd big 240-1 f 240 g 480; xadd big 241-1 f 241 g "
     "482; xadd big 242-1 f 242 g 484; xadd big 243-1 f 243 g 486; xadd big 244-1 f 244 g 488; "
     "xadd big 245-1 f 245 g 490; xadd big 246-1 f 246 g 492; xadd big 247-1 f 247 g 494; xadd big "
     "248-1 f 248 g 496; xadd big 249-1 f 249 g 498; xadd big 250-1 f 250 g 500; xadd big 251-1 f "
     "251 g 502; xadd big 252-1 f 252 g 504; xadd big 253-1 f 253 g 506; xadd big 254-1 f 254 g "
     "508; xadd big 255-1 f 255 g 510; xadd big 256-1 f 256 g 512; xadd big 257-1 f 257 g 514; "
     "xadd big 258-1 f 258 g 516; xadd big 259-1 f 259 g 518; xadd big 260-1 f 260 g 520; xadd big "
     "261-1 f 261 g 522; xadd big 262-1 f 262 g 524; xadd big 263-1 f 263 g 526; xadd big 264-1 f "
     "264 g 528; xadd big 265-1 f 265 g 530; xadd big 266-1 f 266 g 532; xadd big 267-1 f 267 g "
     "534; xadd big 268-1 f 268 g 536; xadd big 269-1 f 269 g 538; xadd big 270-1 f 270 g 540; "
     "xadd big 271-1 f 271 g 542; xadd big 272-1 f 272 g 544; xadd big 273-1 f 273 g 546; xadd big "
     "274-1 f 274 g 548; xadd big 275-1 f 275 g 550; xadd big 276-1 f 276 g 552; xadd big 277-1 f "
     "277 g 554; xadd big 278-1 f 278 g 556; xadd big 279-1 f 279 g 558; xadd big 280-1 f 280 g "
     "560; xadd big 281-1 f 281 g 562; xadd big 282-1 f 282 g 564; xadd big 283-1 f 283 g 566; "
     "xadd big 284-1 f 284 g 568; xadd big 285-1 f 285 g 570; xadd big 286-1 f 286 g 572; xadd big "
     "287-1 f 287 g 574; xadd big 288-1 f 288 g 576; xadd big 289-1 f 289 g 578; xadd big 290-1 f "
     "290 g 580; xadd big 291-1 f 291 g 582; xadd big 292-1 f 292 g 584; xadd big 293-1 f 293 g "
     "586; xadd big 294-1 f 294 g 588; xadd big 295-1 f 295 g 590; xadd big 296-1 f 296 g 592; "
     "xadd big 297-1 f 297 g 594; xadd big 298-1 f 298 g 596; xadd big 299-1 f 299 g 598; xadd big "
     "300-1 f 300 g 600; xadd big 301-1 f 301 g 602; xadd big 302-1 f 302 g 604; xadd big 303-1 f "
     "303 g 606; xadd big 304-1 f 304 g 608; xadd big 305-1 f 305 g 610; xadd big 306-1 f 306 g "
     "612; xadd big 307-1 f 307 g 614; xadd big 308-1 f 308 g 616; xadd big 309-1 f 309 g 618; "
     "xadd big 310-1 f 310 g 620; xadd big 311-1 f 311 g 622; xadd big 312-1 f 312 g 624; xadd big "
     "313-1 f 313 g 626; xadd big 314-1 f 314 g 628; xadd big 315-1 f 315 g 630; xadd big 316-1 f "
     "316 g 632; xadd big 317-1 f 317 g 634; xadd big 318-1 f 318 g 636; xadd big 319-1 f 319 g "
     "638; xadd big 320-1 f 320 g 640; xadd big 321-1 f 321 g 642; xadd big 322-1 f 322 g 644; "
     "xadd big 323-1 f 323 g 646; xadd big 324-1 f 324 g 648; xadd big 325-1 f 325 g 650; xadd big "
     "326-1 f 326 g 652; xadd big 327-1 f 327 g 654; xadd big 328-1 f 328 g 656; xadd big 329-1 f "
     "329 g 658; xadd big 330-1 f 330 g 660; xadd big 331-1 f 331 g 662; xadd big 332-1 f 332 g "
     "664; xadd big 333-1 f 333 g 666; xadd big 334-1 f 334 g 668; xadd big 335-1 f 335 g 670; "
     "xadd big 336-1 f 336 g 672; xadd big 337-1 f 337 g 674; xadd big 338-1 f 338 g 676; xadd big "
     "339-1 f 339 g 678; xadd big 340-1 f 340 g 680; xadd big 341-1 f 341 g 682; xadd big 342-1 f "
     "342 g 684; xadd big 343-1 f 343 g 686; xadd big 344-1 f 344 g 688; xadd big 345-1 f 345 g "
     "690; xadd big 346-1 f 346 g 692; xadd big 347-1 f 347 g 694; xadd big 348-1 f 348 g 696; "
     "xadd big 349-1 f 349 g 698; xadd big 350-1 f 350 g 700"},
    {"XADD big maxlen ~ 120 400-1 f x g y", R"("400-1")", "XADD big MAXLEN = 151 400-1 f x g y"},
    {"XLEN big", "(integer) 151"},
    {"XADD big maxlen ~ 20 limit 100 401-1 f x g y", R"("401-1")",
     "XADD big MAXLEN = 52 401-1 f x g y"},
    {"XLEN big", "(integer) 52"},
    {"XTRIM big maxlen ~ 20 limit 10", "(integer) 0"},
    {"XTRIM big minid ~ 350", "(integer) 0"},
    {"XLEN big", "(integer) 52"},
    {"XRANGE big - + count 2",
     R"([["301-1", ["f", "301", "g", "602"]], ["302-1", ["f", "302", "g", "604"]]])"},
    {"XREVRANGE big + - count 3",
     R"([["401-1", ["f", "x", "g", "y"]], ["400-1", ["f", "x", "g", "y"]], ["350-1", ["f", )"
     R"("350", "g", "700"]]])"},
    {"XTRIM big minid = 348-0", "(integer) 47", "="},
    {"XINFO STREAM big",
     R"(map["length", (integer) 5, "radix-tree-keys", (integer) 1, "radix-tree-nodes", )"
     R"((integer) 2, "last-generated-id", "401-1", "max-deleted-entry-id", "0-0", )"
     R"("entries-added", (integer) 352, "recorded-first-entry-id", "348-1", "groups", (integer) )"
     R"(0, "first-entry", ["348-1", ["f", "348", "g", "696"]], "last-entry", ["401-1", ["f", )"
     R"("x", "g", "y"]]])"},
    {"COPY big big2", "(integer) 1", "="},
    {"XRANGE big2 - +",
     R"([["348-1", ["f", "348", "g", "696"]], ["349-1", ["f", "349", "g", "698"]], ["350-1", )"
     R"(["f", "350", "g", "700"]], ["400-1", ["f", "x", "g", "y"]], ["401-1", ["f", "x", "g", )"
     R"("y"]]])"},
    {"XGROUP CREATE big g 0", "OK", "="},
    {"XREADGROUP group g c noack count 2 streams big >",
     R"(map["big", [["348-1", ["f", "348", "g", "696"]], ["349-1", ["f", "349", "g", "698"]]]])",
     "XGROUP CREATECONSUMER big g c; XGROUP SETID big g 349-1 ENTRIESREAD 349"},
    {"XINFO GROUPS big",
     R"([map["name", "g", "consumers", (integer) 1, "pending", (integer) 0, )"
     R"("last-delivered-id", "349-1", "entries-read", (integer) 349, "lag", (integer) 3]])"},
    {"XPENDING big g", "[(integer) 0, (nil), (nil), (nil)]"},
    {"XREADGROUP group g c streams big big > >",
     R"(map["big", [["350-1", ["f", "350", "g", "700"]], ["400-1", ["f", "x", "g", "y"]], )"
     R"(["401-1", ["f", "x", "g", "y"]]]])",
     "XCLAIM big g c 0 350-1 400-1 401-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID "
     "401-1; XGROUP SETID big g 401-1 ENTRIESREAD 352"},
    {"XINFO GROUPS big",
     R"([map["name", "g", "consumers", (integer) 1, "pending", (integer) 3, )"
     R"("last-delivered-id", "401-1", "entries-read", (integer) 352, "lag", (integer) 0]])"},
    {"XDEL big 350-1", "(integer) 1", "="},
    {"XINFO GROUPS big",
     R"([map["name", "g", "consumers", (integer) 1, "pending", (integer) 3, )"
     R"("last-delivered-id", "401-1", "entries-read", (integer) 352, "lag", (integer) 0]])"},
    {"XGROUP SETID big g 349-1", "OK", "="},
    {"XINFO GROUPS big", R"([map["name", "g", "consumers", (integer) 1, "pending", (integer) 3, )"
                         R"("last-delivered-id", "349-1", "entries-read", (nil), "lag", (nil)]])"},
    {"XREADGROUP group g c count 1 streams big >",
     R"(map["big", [["400-1", ["f", "x", "g", "y"]]]])",
     "XCLAIM big g c 0 400-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 400-1; XGROUP "
     "SETID big g 400-1 ENTRIESREAD -1"},
    {"XINFO GROUPS big", R"([map["name", "g", "consumers", (integer) 1, "pending", (integer) 3, )"
                         R"("last-delivered-id", "400-1", "entries-read", (nil), "lag", (nil)]])"},
};

}  // namespace

std::span<const CommandTable> stream_tables() {
  static constexpr CommandTable tables[] = {
      {"streams", streams},
      {"stream_groups", stream_groups},
      {"stream_trimming", stream_trimming},
  };
  return tables;
}

}  // namespace sluice::engine
