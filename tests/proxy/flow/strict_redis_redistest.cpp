// The same long pipelined stream for nutcracker and for our proxy in strict mode, each with servers
// of its own that have the same names and data: every reply is the same to the byte, and the
// connection ends at the same request.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "proxy/flow/strict_stream.hpp"
#include "resp/writer.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

// What twemproxy 0.5.0 knows, but what answers by chance, by the clock, or by an order that is
// another in each server: those are asked where there is one answer (a set of integers is sorted, a
// random member of a set that is asked for more than it has).
constexpr std::string_view patterns[] = {
    // Strings.
    "GET <str>",
    "SET <str> <value>",
    "GET <str>",
    "SET <str> <value>",
    "SET <int> <number>",
    "SET <str> <value> NX",
    "SET <str> <value> XX GET",
    "APPEND <str> <short>",
    "STRLEN <str>",
    "GETSET <str> <value>",
    "GETDEL <str>",
    "GETEX <str> PERSIST",
    "GETRANGE <str> <number> <number>",
    "SETRANGE <str> <small> <short>",
    "SETNX <str> <value>",
    "INCR <int>",
    "DECR <int>",
    "INCRBY <int> <number>",
    "DECRBY <int> <number>",
    "INCRBYFLOAT <int> 0.5",
    "GETBIT <str> <small>",
    "SETBIT <str> <small> <bit>",
    "BITCOUNT <str>",
    "BITCOUNT <str> 0 <small>",
    "BITPOS <str> <bit>",
    "BITFIELD <str> INCRBY u8 <small> <bit>",
    "PSETEX <expiring> 100000000 <value>",
    "SETEX <expiring> 100000 <value>",
    "SET <expiring> <value> EX 100000",
    // Keys.
    "EXPIRE <expiring> 100000",
    "PEXPIRE <expiring> 100000000",
    "EXPIREAT <expiring> 99999999999",
    "EXPIREAT <expiring> 1",
    "PEXPIREAT <expiring> 1",
    "PERSIST <expiring>",
    "TTL <any>",
    "PTTL <any>",
    "TYPE <any>",
    "DUMP <str>",
    "EXISTS <any>",
    "EXISTS <any> <any> <any>",
    "RESTORE <any> 0 <short>",
    "COPY <str> <str>",
    "COPY <str> <str> REPLACE",
    "SORT <list>",
    "SORT <list> DESC LIMIT 0 3",
    // Cut up.
    "MGET <str>",
    "MGET <str..>",
    "MGET <str..>",
    "MGET <any..>",
    "MGET <missing..>",
    "MSET <str+value>",
    "MSET <str+value..>",
    "DEL <any>",
    "DEL <str..>",
    "UNLINK <str..>",
    "UNLINK <any>",
    "TOUCH <any..>",
    "mGeT <str..>",
    // Hashes.
    "HSET <hash> <field> <short>",
    "HSET <hash> <field+short..>",
    "HMSET <hash> <field+short..>",
    "HGET <hash> <field>",
    "HMGET <hash> <field..>",
    "HGETALL <hash>",
    "HKEYS <hash>",
    "HVALS <hash>",
    "HLEN <hash>",
    "HDEL <hash> <field..>",
    "HEXISTS <hash> <field>",
    "HINCRBY <hash> <counter> <number>",
    "HINCRBYFLOAT <hash> <counter> 0.25",
    "HSETNX <hash> <field> <short>",
    "HSTRLEN <hash> <field>",
    "HRANDFIELD <missing>",
    "HRANDFIELD <missing> 3 WITHVALUES",
    // Lists.
    "LPUSH <list> <number..>",
    "RPUSH <list> <number..>",
    "RPUSH <list> <number..>",
    "LPUSHX <list> <number>",
    "RPUSHX <list> <number>",
    "LPOP <list>",
    "RPOP <list>",
    "LPOP <list> 2",
    "RPOP <list> <small>",
    "LRANGE <list> 0 -1",
    "LRANGE <list> <number> <number>",
    "LLEN <list>",
    "LINDEX <list> <number>",
    "LINSERT <list> BEFORE <number> <number>",
    "LREM <list> <number> <number>",
    "LSET <list> 0 <number>",
    "LTRIM <list> -30 -1",
    "LPOS <list> <number>",
    "RPOPLPUSH <list> <list>",
    "LMOVE <list> <list> LEFT RIGHT",
    // Sets of integers.
    "SADD <set> <small..>",
    "SADD <set> <small..>",
    "SREM <set> <small..>",
    "SCARD <set>",
    "SMEMBERS <set>",
    "SISMEMBER <set> <small>",
    "SMISMEMBER <set> <small..>",
    "SMOVE <set> <set> <small>",
    "SDIFF <set..>",
    "SINTER <set..>",
    "SUNION <set..>",
    "SDIFFSTORE <set> <set..>",
    "SINTERSTORE <set> <set..>",
    "SUNIONSTORE <set> <set..>",
    "SSCAN <set> 0",
    "SPOP <missing>",
    "SPOP <set> 1000",
    "SRANDMEMBER <missing>",
    "SRANDMEMBER <set> 1000",
    // Sorted sets.
    "ZADD <zset> <number+member..>",
    "ZADD <zset> <number+member..>",
    "ZADD <zset> XX CH <number+member>",
    "ZINCRBY <zset> <number> <member>",
    "ZREM <zset> <member..>",
    "ZCARD <zset>",
    "ZSCORE <zset> <member>",
    "ZMSCORE <zset> <member..>",
    "ZRANK <zset> <member>",
    "ZREVRANK <zset> <member>",
    "ZRANGE <zset> 0 -1 WITHSCORES",
    "ZRANGE <zset> <number> <number> BYSCORE",
    "ZREVRANGE <zset> 0 <small>",
    "ZRANGEBYSCORE <zset> -inf <number>",
    "ZREVRANGEBYSCORE <zset> +inf <number> WITHSCORES",
    "ZCOUNT <zset> <number> <number>",
    "ZLEXCOUNT <zset> - +",
    "ZRANGEBYLEX <zset> - [m",
    "ZREVRANGEBYLEX <zset> + -",
    "ZPOPMIN <zset>",
    "ZPOPMAX <zset> 2",
    "ZREMRANGEBYRANK <zset> 0 1",
    "ZREMRANGEBYSCORE <zset> 0 <number>",
    "ZREMRANGEBYLEX <zset> [a [c",
    "ZRANGESTORE <zset> <zset> 0 3",
    "ZUNIONSTORE <zset> 2 <zset> <zset>",
    "ZINTERSTORE <zset> 2 <zset> <zset>",
    "ZDIFFSTORE <zset> 2 <zset> <zset>",
    "ZUNION 2 <zset> <zset> WITHSCORES",
    "ZINTER 2 <zset> <zset>",
    "ZDIFF 2 <zset> <zset>",
    "ZRANDMEMBER <missing>",
    "ZSCAN <missing> 0",
    // Estimates and places.
    "PFADD <hll> <small..>",
    "PFCOUNT <hll>",
    "PFCOUNT <hll> <hll>",
    "PFMERGE <hll> <hll>",
    "GEOADD <geo> 13.36 38.11 <member>",
    "GEOADD <geo> 15.08 37.5 <member>",
    "GEOPOS <geo> <member..>",
    "GEOHASH <geo> <member>",
    "GEODIST <geo> <member> <member> km",
    "GEORADIUS <geo> 15 37 200 km ASC",
    "GEORADIUSBYMEMBER <geo> <member> 200 km ASC",
    "GEOSEARCH <geo> FROMLONLAT 15 37 BYRADIUS 200 km ASC",
    "GEOSEARCHSTORE <geo> <geo> FROMLONLAT 15 37 BYRADIUS 200 km",
    // Scripts, and what the proxy answers itself.
    "EVAL return{KEYS[1],ARGV[1],redis.call('get',KEYS[1])} 1 <str> <value>",
    "EVAL return#KEYS 2 <str> <str>",
    "EVALSHA 0123456789012345678901234567890123456789 1 <str>",
    "PING",
    "ping",
    "AUTH secret",
    // Of the wrong type, or otherwise no good.
    "GET <any>",
    "INCR <any>",
    "LPUSH <any> <small>",
    "HGET <any> <field>",
    "SADD <any> <small>",
    "ZADD <any> 1 <member>",
    "INCR <str>",
    "SET <str> <value> NOPE",
    "LSET <list> 1000000 x",
    "GETRANGE <str> a b",
    "BITCOUNT <str> x",
};

// What ends the connection.
constexpr std::string_view endings[] = {
    "QUIT",       "SELECT 1",    "INFO",         "MULTI",  "GET",
    "GET a b",    "MSET a",      "MSET a 1 b",   "ECHO x", "KEYS *",
    "HELLO 3",    "SUBSCRIBE c", "BLPOP l 1",    "SCAN 0", "OBJECT ENCODING a",
    "RENAME a b", "EVAL x 0",    "XADD s * a 1", "PING x", "NOSUCH a",
};

WordMaker named(std::string_view family, std::size_t many) {
  return [=](Random& random) { return fmt::format("{}:{}", family, up_to(random, many)); };
}
WordMaker number(std::size_t most, bool negative) {
  return [=](Random& random) {
    const auto value = static_cast<long>(up_to(random, most));
    return std::to_string(negative && up_to(random, 1) == 0 ? -value : value);
  };
}

Vocabulary vocabulary() {
  static constexpr std::array families{"str", "int", "list", "set", "zset", "hash", "hll", "geo"};
  constexpr std::size_t keys = 25;
  Vocabulary words;
  for (const std::string_view family : families) words[family] = named(family, keys);
  words["expiring"] = named("expiring", keys);
  words["missing"] = named("missing", keys);
  words["any"] = [](Random& random) {
    return fmt::format("{}:{}", families[up_to(random, families.size() - 1)], up_to(random, keys));
  };
  words["field"] = named("f", 10);
  words["counter"] = named("c", 3);
  words["member"] = named("m", 10);
  words["number"] = number(30, true);
  words["small"] = number(60, false);
  words["bit"] = number(1, false);
  words["value"] = random_value;
  words["short"] = [](Random& random) { return random_value(random).substr(0, 30); };
  // A binary key, so that they are hashed alike.
  words["str"] = [](Random& random) {
    const auto which = up_to(random, keys);
    return which < 5 ? fmt::format("\xff\r\n{}\x01", which) : fmt::format("str:{}", which);
  };
  return words;
}

std::string wire(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views{words.begin(), words.end()};
  std::string bytes;
  resp::append_command(bytes, views);
  return bytes;
}

class StrictRedis : public StrictStream<RedisServer> {
 protected:
  Batch batch(std::size_t requests) override {
    Batch batch;
    for (; requests > 0; --requests) {
      auto words = fill(patterns[up_to(random_, std::size(patterns) - 1)], words_, random_, 20);
      if (has_failed_server_ && is_cut_up_read(words)) continue;
      batch.add(wire(words), true);
    }
    if (has_failed_server_) batch.add(wire(fill("MGET <str..>", words_, random_, 20)), true);
    return batch;
  }
  /// It comes last where a server has failed.
  static bool is_cut_up_read(const std::vector<std::string>& words) {
    return (words.front() == "MGET" || words.front() == "mGeT") && words.size() > 2;
  }
  Batch ending() override {
    Batch batch;  // without the cut-up read of batch()
    for (auto before = up_to(random_, 3); before > 0; --before)
      batch.add(wire({"SET", "str:1", "before the end"}), true);
    batch.add(wire(fill(endings[up_to(random_, std::size(endings) - 1)], words_, random_, 1)),
              true);
    batch.add(wire({"SET", "str:1", "behind the end"}), true);
    return batch;
  }
  Vocabulary words_ = vocabulary();
};

TEST_F(StrictRedis, EveryReplyIsTwemproxys) {
  Sides sides{3, {"redis: true", "hash: fnv1a_64", "distribution: ketama"}};
  compare(sides, longer(100));
}

TEST_F(StrictRedis, EveryReplyIsTwemproxysWithAHashTagAndModula) {
  Sides sides{2, {"redis: true", "hash: murmur", "distribution: modula", "hash_tag: \"::\""}};
  compare(sides, longer(30));
}

/// Nothing can be guessed there, so none of them waits as those behind a wrong password do: that
/// would be minutes.
TEST_F(StrictRedis, AuthWhereNoPasswordIsSetIsAnsweredAtOnce) {
  Sides sides{1, {"redis: true"}};
  Batch batch;
  for (int i = 0; i < 100; ++i) batch.add(wire({"AUTH", "secret"}), true);
  sides.compare(batch);
}

TEST_F(StrictRedis, X25_EachByteOfARequestIsReadAsTwemproxyReadsIt) {
  Sides sides{1, {"redis: true"}};
  const auto has_leading_zero = [](std::string_view bytes) {
    for (std::size_t at = 0; at + 2 < bytes.size(); ++at)
      if ((bytes[at] == '*' || bytes[at] == '$') && bytes[at + 1] == '0') return true;
    return false;
  };
  for (const auto& request :
       {wire({"GET", "a"}), wire({"SET", "b", "xy"}), wire({"MGET", "a", "b"})})
    compare_bytes(sides, request, wire({"GET", "b"}), has_leading_zero);
}

TEST_F(StrictRedis, WithADeadServer) {
  Sides sides{3, {"redis: true", "hash: fnv1a_64", "distribution: ketama"}};
  compare(sides, longer(5));
  sides.kill(1);
  has_failed_server_ = true;
  sides.await_reply(wire({"GET", sides.key_of(1)}), "-ERR Connection refused\r\n");
  compare(sides, longer(15));
  has_failed_server_ = false;
  sides.start(1);
  sides.await_reply(wire({"GET", sides.key_of(1)}), "$-1\r\n");
  compare(sides, longer(15));
}

TEST_F(StrictRedis, WithAServerThatIsEjected) {
  Sides sides{3,
              {"redis: true", "auto_eject_hosts: true", "server_failure_limit: 1",
               "server_retry_timeout: 3600000"}};
  compare(sides, longer(5));
  sides.kill(2);
  // The key goes to another server then, which does not have it.
  sides.await_reply(wire({"GET", sides.key_of(2)}), "$-1\r\n");
  compare(sides, longer(20));
}

TEST_F(StrictRedis, WithAServerThatHangs) {
  Sides sides{3, {"redis: true", "timeout: 150"}};
  compare(sides, longer(5));
  compare_hung(sides, {wire({"GET", sides.key_of(0)}),
                       wire({"MGET", sides.key_of(0), sides.key_of(1), sides.key_of(2)})});
  sides.empty();  // what it has made of those that it had got
  compare(sides, longer(10));
}

TEST_F(StrictRedis, ManyKeysAndLargeValues) {
  Sides sides{3, {"redis: true"}};
  Batch writes, reads;
  std::vector<std::string> set{"MSET"}, get{"MGET"};
  for (int i = 0; i < 3000; ++i) {
    get.push_back(fmt::format("many:{}", i));
    set.push_back(get.back());
    set.push_back(fmt::format("{}{}", i, std::string(static_cast<std::size_t>(i) * 7 % 1000, 'v')));
  }
  for (const std::size_t size : {16383, 16384, 16385, 32768, 5 << 20}) {
    const auto key = fmt::format("large:{}", size);
    writes.add(wire({"SET", key, std::string(size, 'x')}), true);
    reads.add(wire({"GET", key}), true);
    reads.add(wire({"MGET", key, "many:1", "many:2", key, "no such"}), true);
  }
  writes.add(wire(set), true);
  reads.add(wire(get), true);
  sides.compare(writes);
  sides.compare(reads);
}

}  // namespace
}  // namespace sluice::test
