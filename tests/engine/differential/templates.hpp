/// What the differential test asks of both sides. The grammar is described in grammar.hpp.
/// Left out: what draws lots (SPOP, SRANDMEMBER, RANDOMKEY, HRANDFIELD; tested by property), what tells of the server
/// itself (INFO, CONFIG, CLIENT), and what Redis leaves open: trimming "about" a size, ranges by name where scores differ.
#pragma once

#include <string_view>

namespace sluice::test {

inline constexpr std::string_view command_templates[] = {
    // strings
    "SET <str> <value> [ EX <seconds> | PX <ms> | EXAT <future> | PXAT <future_ms> | KEEPTTL ] [ NX | XX ] [ GET ]",
    "SET <str> <value>", "GET <str>", "SETNX <str> <value>", "SETEX <str> <seconds> <value>", "PSETEX <str> <ms> <value>",
    "GETSET <str> <value>", "GETDEL <str>", "GETEX <str> [ EX <seconds> | PX <ms> | PXAT <future_ms> | PERSIST ]",
    "MGET { <key> }", "MSET { <str> <value> }", "MSETNX { <str> <value> }", "INCR <str>", "DECR <str>",
    "INCRBY <str> <int>", "DECRBY <str> <int>", "INCRBYFLOAT <str> <float>", "APPEND <str> <value>", "STRLEN <str>",
    "GETRANGE <str> <index> <index>", "SUBSTR <str> <index> <index>", "SETRANGE <str> <small> <value>",
    // bits
    "SETBIT <str> <bit> ( 0 | 1 )", "GETBIT <str> <bit>", "BITCOUNT <str> [ <index> <index> [ BYTE | BIT ] ]",
    "BITOP ( AND | OR | XOR ) <str> { <str> }", "BITOP NOT <str> <str>",
    "BITPOS <str> ( 0 | 1 ) [ <index> [ <index> [ BYTE | BIT ] ] ]",
    "BITFIELD <str> { ( GET <bftype> <bfoffset> | [ OVERFLOW ( WRAP | SAT | FAIL ) ] SET <bftype> <bfoffset> <index> | "
    "[ OVERFLOW ( WRAP | SAT | FAIL ) ] INCRBY <bftype> <bfoffset> <int> ) }",
    "BITFIELD_RO <str> { GET <bftype> <bfoffset> }",
    // keys
    "DEL { <key> }", "UNLINK <key>", "EXISTS { <key> }", "TOUCH { <key> }", "TYPE <key>",
    "EXPIRE <key> <seconds> [ NX | XX | GT | LT ]", "PEXPIRE <key> <ms> [ NX | XX | GT | LT ]",
    "EXPIREAT <key> <future> [ NX | XX | GT | LT ]", "PEXPIREAT <key> <future_ms> [ NX | XX | GT | LT ]", "TTL <key>",
    "PTTL <key>", "EXPIRETIME <key>", "PEXPIRETIME <key>", "PERSIST <key>", "RENAME <key> <key>", "RENAMENX <key> <key>",
    "COPY <key> <key> [ REPLACE ]", "KEYS <pattern>", "SCAN 0 COUNT 1000 [ MATCH <pattern> ] [ TYPE ( string | hash | zset ) ]",
    "DBSIZE",
    // hashes
    "HSET <hash> { <member> <value> }", "HSETNX <hash> <member> <value>", "HMSET <hash> { <member> <value> }",
    "HGET <hash> <member>", "HMGET <hash> { <member> }", "HGETALL <hash>", "HDEL <hash> { <member> }", "HLEN <hash>",
    "HEXISTS <hash> <member>", "HKEYS <hash>", "HVALS <hash>", "HINCRBY <hash> <member> <int>",
    "HINCRBYFLOAT <hash> <member> <float>", "HSTRLEN <hash> <member>", "HSCAN <hash> 0 COUNT 1000 [ MATCH <pattern> ]",
    // lists
    "LPUSH <list> { <member> }", "RPUSH <list> { <member> }", "LPUSHX <list> { <member> }", "RPUSHX <list> { <member> }",
    "LPOP <list> [ <small> ]", "RPOP <list> [ <small> ]", "LLEN <list>", "LRANGE <list> <index> <index>",
    "LINDEX <list> <index>", "LSET <list> <index> <member>", "LREM <list> <index> <member>", "LTRIM <list> <index> <index>",
    "LINSERT <list> ( BEFORE | AFTER ) <member> <member>",
    "LPOS <list> <member> [ RANK <index> ] [ COUNT <small> ] [ MAXLEN <small> ]",
    "LMOVE <list> <list> ( LEFT | RIGHT ) ( LEFT | RIGHT )", "RPOPLPUSH <list> <list>", "LMPOP 2 <list> <list> ( LEFT | RIGHT ) [ COUNT <positive> ]",
    // sets
    "SADD <set> { <member> }", "SADD <set> { <int> }", "SREM <set> { <member> }", "SISMEMBER <set> <member>",
    "SMISMEMBER <set> { <member> }", "SMEMBERS <set>", "SCARD <set>", "SMOVE <set> <set> <member>", "SINTER { <set> }",
    "SUNION { <set> }", "SDIFF { <set> }", "SINTERSTORE <set> { <set> }", "SUNIONSTORE <set> { <set> }",
    "SDIFFSTORE <set> { <set> }", "SINTERCARD 2 <set> <set> [ LIMIT <small> ]", "SSCAN <set> 0 COUNT 1000 [ MATCH <pattern> ]",
    // sorted sets
    "ZADD <zset> [ NX | XX ] [ GT | LT ] [ CH ] { <score> <member> }", "ZADD <zset> { <score> <member> }",
    "ZADD <zset> [ NX | XX ] INCR <score> <member>", "ZREM <zset> { <member> }", "ZSCORE <zset> <member>",
    "ZMSCORE <zset> { <member> }", "ZINCRBY <zset> <score> <member>", "ZCARD <zset>", "ZCOUNT <zset> <limit> <limit>",
    "ZADD <lexset> { 0 <member> }", "ZREM <lexset> <member>", "ZLEXCOUNT <lexset> <lex> <lex>", "ZRANK <zset> <member>", "ZREVRANK <zset> <member>",
    "ZRANGE <zset> <index> <index> [ REV ] [ WITHSCORES ]",
    "ZRANGE <zset> <limit> <limit> BYSCORE [ REV ] [ LIMIT <index> <index> ] [ WITHSCORES ]",
    "ZRANGE <lexset> <lex> <lex> BYLEX [ REV ] [ LIMIT <index> <index> ]", "ZREVRANGE <zset> <index> <index> [ WITHSCORES ]",
    "ZRANGEBYSCORE <zset> <limit> <limit> [ WITHSCORES ] [ LIMIT <index> <index> ]",
    "ZREVRANGEBYSCORE <zset> <limit> <limit> [ WITHSCORES ] [ LIMIT <index> <index> ]", "ZRANGEBYLEX <lexset> <lex> <lex>",
    "ZREVRANGEBYLEX <lexset> <lex> <lex>", "ZRANGESTORE <zset> <zset> <index> <index> [ REV ]",
    "ZREMRANGEBYSCORE <zset> <limit> <limit>", "ZREMRANGEBYRANK <zset> <index> <index>", "ZREMRANGEBYLEX <lexset> <lex> <lex>",
    "ZPOPMIN <zset> [ <small> ]", "ZPOPMAX <zset> [ <small> ]", "ZMPOP 2 <zset> <zset> ( MIN | MAX ) [ COUNT <positive> ]",
    "ZUNIONSTORE <zset> 2 <zset> ( <zset> | <set> ) [ WEIGHTS <weight> <weight> ] [ AGGREGATE ( SUM | MIN | MAX ) ]",
    "ZINTERSTORE <zset> 2 <zset> ( <zset> | <set> ) [ WEIGHTS <weight> <weight> ] [ AGGREGATE ( SUM | MIN | MAX ) ]",
    "ZUNION 2 <zset> <zset> [ WEIGHTS <weight> <weight> ] [ AGGREGATE ( SUM | MIN | MAX ) ] [ WITHSCORES ]",
    "ZINTER 2 <zset> <zset> [ AGGREGATE ( SUM | MIN | MAX ) ] [ WITHSCORES ]", "ZDIFF 2 <zset> <zset> [ WITHSCORES ]",
    "ZDIFFSTORE <zset> 2 <zset> <zset>", "ZINTERCARD 2 <zset> <zset> [ LIMIT <small> ]",
    "ZSCAN <zset> 0 COUNT 1000 [ MATCH <pattern> ]",
    // streams and their groups
    "XADD <stream> [ NOMKSTREAM ] [ MAXLEN [ = ] <small> | MINID <id> ] <newid> { <member> <value> }",
    "XADD <stream> <newid> { <member> <value> }", "XADD <stream> <id> <member> <value>", "XLEN <stream>",
    "XRANGE <stream> ( - | <id> | (<id> ) ( + | <id> ) [ COUNT <small> ]", "XREVRANGE <stream> ( + | <id> ) ( - | <id> ) [ COUNT <small> ]",
    "XDEL <stream> { <id> }", "XTRIM <stream> ( MAXLEN [ = ] <small> | MINID <id> )", "XREAD [ COUNT <small> ] STREAMS <stream> <stream> <id> <id>",
    "XGROUP CREATE <stream> <group> ( $ | 0 | <id> ) [ MKSTREAM ] [ ENTRIESREAD <small> ]", "XGROUP SETID <stream> <group> ( $ | 0 | <id> )",
    "XGROUP DESTROY <stream> <group>", "XGROUP CREATECONSUMER <stream> <group> <consumer>", "XGROUP DELCONSUMER <stream> <group> <consumer>",
    "XREADGROUP GROUP <group> <consumer> [ COUNT <small> ] [ NOACK ] STREAMS <stream> ( > | > | 0 | <id> )",
    "XREADGROUP GROUP <group> <consumer> STREAMS <stream> >", "XACK <stream> <group> { <id> }", "XPENDING <stream> <group>",
    "XPENDING <stream> <group> [ IDLE 0 ] - + <positive> [ <consumer> ]",
    "XCLAIM <stream> <group> <consumer> 0 { <id> } [ RETRYCOUNT <small> ] [ FORCE ] [ JUSTID ]",
    "XAUTOCLAIM <stream> <group> <consumer> 0 ( 0 | <id> ) [ COUNT <positive> ] [ JUSTID ]", "XSETID <stream> <id>",
    "XINFO STREAM <stream>", "XINFO STREAM <stream> FULL", "XINFO GROUPS <stream>", "XINFO CONSUMERS <stream> <group>",
    // the rest
    "ECHO <value>", "PING [ <value> ]", "SELECT 0", "PUBLISH <key> <value>", "OBJECT ENCODING nothing",
};

/// For scripts: each is run with two keys and two arguments.
inline constexpr std::string_view scripts[] = {
    "return ARGV[1]",
    "return {KEYS[1], ARGV[1], 3.99, -3.99, true, false, 'after nil'}",
    "return {1, 2, nil, 4}",
    "return tonumber(ARGV[1])",
    "return {ok = KEYS[1]}",
    "return {err = 'MY error ' .. KEYS[1]}",
    "return redis.error_reply('ERR ' .. KEYS[2])",
    "return redis.status_reply('fine')",
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('INCR', KEYS[1])",
    "return redis.call('INCR', KEYS[1])",
    "local n = redis.call('INCRBY', KEYS[1], 7) return n * 2 + 0.5",
    "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('LPUSH', KEYS[1], ARGV[2])",
    "redis.call('HSET', KEYS[1], 'f', ARGV[1]) return #redis.call('HGETALL', KEYS[1])",
    "local t = redis.call('LRANGE', KEYS[1], 0, -1) return #t",
    "local r = redis.pcall('LLEN', KEYS[1]) if type(r) == 'table' then return r.err end return r",
    "return redis.call('EXISTS', KEYS[1]) == 1 and redis.call('TYPE', KEYS[1]) or 'none'",
    "return redis.call('TYPE', KEYS[1])['ok']",
    "return type(redis.call('GET', KEYS[2]))",
    "if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then redis.call('PEXPIRE', KEYS[1], 100000) return 1 end return 0",
    "return redis.sha1hex(ARGV[1])",
    "return tostring(tonumber(ARGV[1]))",
    "return {tostring(1e15), tostring(0.1), 10 / 4, math.floor(2.7), #ARGV[2]}",
    "return cjson.encode({KEYS[1], 1, 2.5, true})",
    "return cjson.decode('{\"a\":[1,2,{\"b\":null}]}')['a'][2]",
    "return redis.call('ZADD', KEYS[1], 1.5, ARGV[1], 2, ARGV[2])",
    "return redis.call('ZSCORE', KEYS[1], ARGV[1])",
    "redis.setresp(3) return redis.call('ZSCORE', KEYS[1], ARGV[1])",
    "redis.setresp(3) return redis.call('GET', KEYS[1])",
    "return redis.call('NOSUCH', KEYS[1])",
    "return redis.call('GET')",
    "return redis.call()",
    "return redis.pcall('NOSUCH')",
    "x = 1",
    "return nosuch",
    "error('thrown')",
    "error({err = 'ERR as a table'})",
    "return string.format('%5.1f|%s|%d', 2.25, ARGV[1], 7)",
    "return {pcall(function() error('inside') end)}",
    "return struct.pack('>I2i4s', 1, -2, ARGV[1])",
    "return {struct.unpack('>I2', '\\1\\2xx')}",
    "return bit.band(0xff, 0x3c) + bit.lshift(1, 4)",
    "local s = 0 for i = 1, 100 do s = s + i end return s",
    "local r = {} for k, v in ipairs(ARGV) do r[#r + 1] = k .. '=' .. v end return r",
    "return select('#', unpack(KEYS))",
    "return cmsgpack.unpack(cmsgpack.pack({ARGV[1], 5}))",
};

}  // namespace sluice::test
