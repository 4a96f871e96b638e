#include "engine/random_commands.hpp"

#include <algorithm>
#include <array>

#include "engine/number_text.hpp"

namespace sluice::engine {
namespace {

// $k a key, $f a field or member, $v a value, $i a small integer, $n a number from 0 on, $s a score, $c a score end,
// $m a number up to 600, $l a lexical end, $d LEFT or RIGHT, $w a bit offset.
constexpr std::string_view templates[] = {
    "SET $k $v",
    "SET $k $v NX",
    "SET $k $v XX GET",
    "SET $k $v KEEPTTL",
    "SET $k $v EXAT 2000000000",
    "SET $k $v PXAT 2000000000100 GET",
    "SET $k $i",
    "SET $k $s",
    "SETNX $k $v",
    "SETEX $k -1 $v",
    "PSETEX $k 0 $v",
    "GETSET $k $v",
    "GETDEL $k",
    "GET $k",
    "GETEX $k",
    "GETEX $k PERSIST",
    "GETEX $k PXAT 2000000000000",
    "MGET $k $k $k",
    "MSET $k $v $k $v",
    "MSETNX $k $v $k $v",
    "STRLEN $k",
    "APPEND $k $v",
    "GETRANGE $k $i $i",
    "SETRANGE $k $n $v",
    "INCR $k",
    "DECR $k",
    "INCRBY $k $i",
    "DECRBY $k $i",
    "INCRBYFLOAT $k $s",
    "SUBSTR $k $i $i",
    "SETBIT $k $w 1",
    "SETBIT $k $w 0",
    "GETBIT $k $w",
    "BITCOUNT $k",
    "BITCOUNT $k $i $i",
    "BITCOUNT $k $i $i BIT",
    "BITPOS $k 1",
    "BITPOS $k 0",
    "BITPOS $k 1 $i",
    "BITPOS $k 0 $i $i",
    "BITPOS $k 1 $i $i BIT",
    "BITOP AND $k $k $k",
    "BITOP OR $k $k $k",
    "BITOP XOR $k $k $k $k",
    "BITOP NOT $k $k",
    "BITFIELD $k GET u8 $w SET i5 $w $i INCRBY u7 $w $i",
    "BITFIELD $k OVERFLOW SAT INCRBY i8 #$n $i",
    "BITFIELD $k OVERFLOW FAIL INCRBY u3 $w $i SET u63 $w $i",
    "BITFIELD_RO $k GET i64 $w",
    "BITFIELD $k SET u8 #1 -1",
    "DEL $k",
    "DEL $k $k",
    "UNLINK $k",
    "EXISTS $k $k",
    "TOUCH $k $k",
    "TYPE $k",
    "RENAME $k $k",
    "RENAMENX $k $k",
    "COPY $k $k",
    "COPY $k $k REPLACE",
    "PERSIST $k",
    "EXPIREAT $k 2000000000",
    "PEXPIREAT $k 2000000001999 NX",
    "EXPIREAT $k 200000000$n GT",
    "EXPIREAT $k 200000000$n LT",
    "PEXPIREAT $k 200000000$n000 XX",
    "PEXPIRETIME $k",
    "EXPIRETIME $k",
    "EXPIRE $k -1",
    "EXPIREAT $k 1",
    "KEYS *",
    "DBSIZE",
    "OBJECT ENCODING nothing",
    "EXPIRE $k x",
    "OBJECT FOO $k",
    "RENAME $k",
    "FOO $k $v",
    "HSET $k $f $v",
    "HSET $k $f $v $f $v",
    "HSET $k $f $i",
    "HSETNX $k $f $v",
    "HMSET $k $f $v $f $v",
    "HGET $k $f",
    "HMGET $k $f $f",
    "HGETALL $k",
    "HKEYS $k",
    "HVALS $k",
    "HDEL $k $f",
    "HDEL $k $f $f",
    "HLEN $k",
    "HEXISTS $k $f",
    "HSTRLEN $k $f",
    "HINCRBY $k $f $i",
    "HINCRBYFLOAT $k $f $s",
    "HSET $k $f",
    "HRANDFIELD $k 0",
    "LPUSH $k $v",
    "RPUSH $k $v $v $v",
    "LPUSHX $k $v",
    "RPUSHX $k $v",
    "LPOP $k",
    "RPOP $k",
    "LPOP $k 2",
    "RPOP $k 0",
    "LLEN $k",
    "LRANGE $k $i $i",
    "LRANGE $k 0 -1",
    "LINDEX $k $i",
    "LSET $k $i $v",
    "LREM $k $i $v",
    "LTRIM $k $i $i",
    "LINSERT $k BEFORE $v $v",
    "LINSERT $k AFTER $v $v",
    "LPOS $k $v",
    "LPOS $k $v COUNT 0",
    "LPOS $k $v RANK $i",
    "LPOS $k $v RANK -1 COUNT 2 MAXLEN 3",
    "LMOVE $k $k $d $d",
    "RPOPLPUSH $k $k",
    "LMPOP 2 $k $k $d",
    "LMPOP 2 $k $k $d COUNT 2",
    "LMPOP 0 $k $d",
    "LMPOP 1 $k FOO",
    "SADD $k $f",
    "SADD $k $f $f $i",
    "SADD $k $i $i $i",
    "SREM $k $f $i",
    "SCARD $k",
    "SISMEMBER $k $f",
    "SMISMEMBER $k $f $i",
    "SMEMBERS $k",
    "SMOVE $k $k $f",
    "SINTER $k $k",
    "SUNION $k $k",
    "SDIFF $k $k",
    "SINTERSTORE $k $k $k",
    "SUNIONSTORE $k $k $k",
    "SDIFFSTORE $k $k $k",
    "SINTERCARD 2 $k $k",
    "SINTERCARD 2 $k $k LIMIT 1",
    "SPOP $k 100",
    "SRANDMEMBER $k 0",
    "SINTERCARD 3 $k $k",
    "ZADD $k $s $f",
    "ZADD $k $s $f $s $f $s $f",
    "ZADD $k NX $s $f",
    "ZADD $k XX CH $s $f $s $f",
    "ZADD $k GT CH $s $f",
    "ZADD $k LT $s $f",
    "ZADD $k INCR $s $f",
    "ZADD $k XX INCR $s $f",
    "ZADD $k inf $f",
    "ZINCRBY $k $s $f",
    "ZINCRBY $k -inf $f",
    "ZREM $k $f $f",
    "ZCARD $k",
    "ZSCORE $k $f",
    "ZMSCORE $k $f $f",
    "ZRANK $k $f",
    "ZREVRANK $k $f",
    "ZCOUNT $k $c $c",
    "ZADD lex 0 $f 0 $f",
    "ZREM lex $f",
    "ZLEXCOUNT lex $l $l",
    "ZRANGEBYLEX lex $l $l LIMIT $n $n",
    "ZREVRANGEBYLEX lex $l $l",
    "ZREMRANGEBYLEX lex $l $l",
    "ZRANGE lex $l $l BYLEX REV",
    "ZRANGE $k $i $i",
    "ZRANGE $k $i $i WITHSCORES",
    "ZRANGE $k $i $i REV",
    "ZRANGE $k $c $c BYSCORE LIMIT $i $i",
    "ZRANGE $k $c $c BYSCORE REV WITHSCORES",
    "ZRANGE $k 0 -1 LIMIT 1 1",
    "ZRANGE lex $l $l BYLEX WITHSCORES",
    "ZREVRANGE $k $i $i WITHSCORES",
    "ZRANGEBYSCORE $k $c $c",
    "ZRANGEBYSCORE $k $c $c WITHSCORES LIMIT $n $n",
    "ZREVRANGEBYSCORE $k $c $c LIMIT $n $i",
    "ZREMRANGEBYRANK $k $i $i",
    "ZREMRANGEBYSCORE $k $c $c",
    "ZRANGESTORE $k $k $i $i",
    "ZRANGESTORE $k $k $c $c BYSCORE LIMIT 0 2",
    "ZUNION 2 $k $k WITHSCORES",
    "ZINTER 2 $k $k WITHSCORES AGGREGATE MAX",
    "ZDIFF 2 $k $k WITHSCORES",
    "ZUNIONSTORE $k 2 $k $k",
    "ZUNIONSTORE $k 2 $k $k WEIGHTS 2 $i AGGREGATE MIN",
    "ZINTERSTORE $k 2 $k $k WEIGHTS $s 1",
    "ZDIFFSTORE $k 2 $k $k",
    "ZINTERCARD 2 $k $k",
    "ZINTERCARD 2 $k $k LIMIT 1",
    "ZPOPMIN $k",
    "ZPOPMAX $k",
    "ZPOPMIN $k 2",
    "ZMPOP 2 $k $k MIN",
    "ZMPOP 1 $k MAX COUNT 2",
    "ZRANDMEMBER $k 0",
    "ZADD $k NX GT 1 $f",
    "ZADD $k $s",
    "ZUNIONSTORE $k 0 $k",
    "SORT $k ALPHA",
    "SORT $k DESC",
    "SORT $k ALPHA DESC LIMIT $i $i",
    "SORT bigl LIMIT $n 5",
    "SORT bigs ALPHA LIMIT 0 9",
    "SORT bign DESC GET # GET k* LIMIT 2 3",
    "SORT $k STORE $k",
    "SORT $k ALPHA STORE $k",
    "SORT bign BY nosort STORE $k",
    "SORT_RO $k BY bigh->f*",
    "SORT_RO bign STORE x",
    "SORT bigl BY nosort LIMIT 1 3",
    // Large ones, which have another form.
    "HSET bigh $m $v $m $v $m $v $m $v",
    "HDEL bigh $m $m",
    "HMGET bigh $m $m",
    "HLEN bigh",
    "HGETALL bigh",
    "SADD bigs $m $m x$m $m",
    "SREM bigs $m $m",
    "SMISMEMBER bigs $m $m",
    "SMEMBERS bigs",
    "SINTER bigs bign",
    "SADD bign $m $m $m",
    "SUNIONSTORE bigu bign bigs",
    "SDIFF bign bigs",
    "SCARD bigu",
    "ZADD bigz $m m$m $s m$m $m m$m $m m$m",
    "ZREM bigz m$m m$m",
    "ZRANK bigz m$m",
    "ZRANGE bigz $m $m REV WITHSCORES",
    "ZCOUNT bigz $m ($m",
    "ZRANGE bigz $m $m BYSCORE LIMIT $n $m",
    "ZINCRBY bigz $s m$m",
    "ZREMRANGEBYRANK bigz $m $m",
    "ZUNIONSTORE bigy 2 bigz bigs AGGREGATE MAX",
    "ZRANGE bigy 0 -1 WITHSCORES",
    "ZPOPMAX bigz",
    "RPUSH bigl $m $m $m",
    "LPUSH bigl $m",
    "LREM bigl $i $m",
    "LRANGE bigl $m $m",
    "LINSERT bigl AFTER $m $m",
    "LPOS bigl $m COUNT 0",
    "LINDEX bigl $m",
    "COPY bigz bigy REPLACE",
    "COPY bigh bigi REPLACE",
    "HGETALL bigi",
    "SELECT 16",
    "ECHO $v",
    "PING $v",
    "MOVE $k 99",
};

constexpr std::string_view chancy_templates[] = {
    "SPOP $k",         "SPOP $k 2",      "SRANDMEMBER $k 2", "PEXPIRE $k 50",
    "SET $k $v PX 20", "GETEX $k PX 30", "PSETEX $k 9 $v",   "EXPIRE $k 1",
    "SELECT $n",       "SELECT 0",       "MOVE $k $n",       "COPY $k $k DB $n REPLACE",
    "SWAPDB $n $n",    "BLPOP $k $k 0",  "BZPOPMIN $k $k 0", "BLMOVE $k $k LEFT RIGHT 0",
    "PEXPIREAT $k 1",
};

constexpr std::array<std::string_view, 14> values = {
    "a",          "b",
    "hello",      "",
    "10",         "-3",
    "3.5",        "0",
    "a\n\xff\0z", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "00",         "9223372036854775807",
    "\xff\xff",   "1e3"};
constexpr std::array<std::string_view, 12> scores = {"1",   "2",   "-1.5", "0",   "3.25", "-0",
                                                     "100", "inf", "-inf", "1e3", "0.5",  "nan"};
constexpr std::array<std::string_view, 10> score_ends = {"-inf", "+inf", "(1",  "1",    "(2",
                                                         "0",    "(inf", "100", "-1.5", "x"};
constexpr std::array<std::string_view, 9> lex_ends = {"-",   "+", "[f1", "(f1", "[f3",
                                                      "(f2", "[", "(",   "f"};

}  // namespace

std::string RandomCommands::fill(std::string_view placeholder) {
  const auto from = [&](const auto& choices) {
    return std::string{choices[dice_.below(choices.size())]};
  };
  const auto number = [&](std::int64_t least, std::uint64_t count) {
    return std::to_string(least + static_cast<std::int64_t>(dice_.below(count)));
  };
  switch (placeholder[1]) {
    case 'k': return "k" + number(0, 6);
    case 'f': return "f" + number(0, 6);
    case 'm': return number(0, 600);
    case 'v': return from(values);
    case 'i': return number(-4, 9);
    case 'n': return number(0, 5);
    case 's': return from(scores);
    case 'c': return from(score_ends);
    case 'l': return from(lex_ends);
    case 'd': return dice_.below(2) == 0 ? "LEFT" : "right";
    case 'w': return number(0, 100);
    default: return std::string{placeholder};
  }
}

Line RandomCommands::next() { return filled(templates[dice_.below(std::size(templates))]); }

Line RandomCommands::next_with_chance() {
  if (dice_.below(4) > 0) return next();
  return filled(chancy_templates[dice_.below(std::size(chancy_templates))]);
}

Line RandomCommands::filled(std::string_view text) {
  Line words = words_of(text);
  for (auto& word : words) {
    const auto mark = word.find('$');
    if (mark != std::string::npos)
      word.replace(mark, 2, fill(std::string_view{word}.substr(mark, 2)));
  }
  return words;
}

bool is_unordered(std::string_view command) {
  static constexpr std::string_view names[] = {"keys",  "smembers",   "sinter", "sunion",
                                               "sdiff", "hgetall",    "hkeys",  "hvals",
                                               "spop",  "srandmember"};
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return same_word(command, name); });
}

}  // namespace sluice::engine
