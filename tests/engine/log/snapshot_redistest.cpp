// Snapshots in Redis's form: what a redis-server writes, in every encoding, opens equal to it; what
// only older or newer servers write is made by hand, and a redis-server reads it as well where it
// can. Cut or changed anywhere, a snapshot is refused, and nothing is changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "engine/differential/grammar.hpp"
#include "engine/differential/templates.hpp"
#include "engine/embedded_store.hpp"
#include "engine/log/dump.hpp"
#include "engine/log/whole_files.hpp"
#include "engine/rdb/packed.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using sluice::test::Grammar;
using sluice::test::PlainClient;
using sluice::test::RedisServer;
using sluice::test::TempDir;
using test::Ask;
using test::Dump;
using test::read_file;
using test::write_file;
using namespace std::string_literals;

Dump dump_of(PlainClient& client) {
  return test::dump([&](std::span<const std::string_view> words) { return client.command(words); });
}

struct Opened {
  Dump dump;
  std::string refusal;
};
/// Opens a folder that has this snapshot and nothing else, twice: the second time by the log.
Opened open_snapshot(std::string_view bytes) {
  const TempDir folder;
  write_file(folder / "dump.rdb", bytes);
  Opened opened;
  try {
    opened.dump = test::dump(*open_embedded({.path = folder.str(), .fsync = Fsync::never}));
    const auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
    EXPECT_EQ(test::difference(test::dump(*store), opened.dump), "");
    store->rewrite();
  } catch (const Error& error) {
    opened.refusal = error.message();
    EXPECT_EQ(std::distance(fs::directory_iterator{folder.path()}, {}), 1) << opened.refusal;
  }
  EXPECT_EQ(read_file(folder / "dump.rdb"), bytes);
  return opened;
}

/// --- what a redis-server writes ---

/// One of the ways to keep small collections, so that each encoding is written.
void choose_encodings(PlainClient& client, Grammar& grammar) {
  const auto set = [&](const char* name, std::initializer_list<const char*> values) {
    client.command({"CONFIG", "SET", name, *(values.begin() + grammar.below(values.size()))});
  };
  set("hash-max-listpack-entries", {"0", "4", "512"});
  set("zset-max-listpack-entries", {"0", "4", "128"});
  set("set-max-intset-entries", {"0", "4", "512"});
  set("list-max-listpack-size", {"1", "3", "-1", "-5"});
  set("list-compress-depth", {"0", "1"});
  set("stream-node-max-entries", {"1", "3", "100"});
  set("rdbcompression", {"yes", "no"});
}

void fill(PlainClient& client, Grammar& grammar) {
  for (int i = 0; i < 300; ++i)
    client.command(std::span<const std::string>{grammar.next()});  // also what is an error
  for (const std::size_t size : {20U, 70U, 5000U, 20'000U, 70'000U}) {
    const auto name = std::to_string(size);
    const auto text = std::string(size - 1, 'a') + std::to_string(grammar.below(10));
    client.command({"SET", "text:" + name, text});
    client.command({"RPUSH", "texts", text, "-1", "4095", "-4097", "8388608", "70000", name});
    client.command({"HSET", "texts:hash", name, text});
    client.command({"XADD", "texts:stream", "*", name, text});
    client.command({"SADD", "numbers", name, "-9223372036854775808"});
  }
  const Value keys = client.command({"KEYS", "*"});
  for (const auto& key : keys.as_items())
    if (const auto left = client.command({"PTTL", key.as_text()}).as_integer(); left >= 0)
      client.command({"PEXPIRE", key.as_text(), std::to_string(left + 1'000'000)});
}

void copy_by_dump(const Ask& from, const Ask& to, const Dump& keys) {
  const auto ask = [](const Ask& side, std::initializer_list<std::string_view> words) {
    return side(std::span{words.begin(), words.size()});
  };
  for (const auto& [name, content] : keys) {
    const auto value = ask(from, {"DUMP", name}).as_text();
    const auto ends =
        std::to_string(std::max<std::int64_t>(ask(from, {"PEXPIRETIME", name}).as_integer(), 0));
    const Value done = ask(to, {"RESTORE", name, ends, value, "ABSTTL"});
    EXPECT_FALSE(done.is_error()) << name << ": " << to_string(done);
  }
}

TEST(Snapshot, WhatAServerHasWrittenOpensEqualToIt) {
  const char* const wanted = std::getenv("SLUICE_SEEDS");
  const std::uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 40;
  const RedisServer server;
  PlainClient client{server.port()};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    Grammar grammar{seed, sluice::test::command_templates};
    client.command({"FLUSHALL"});
    choose_encodings(client, grammar);
    fill(client, grammar);
    client.command({"SAVE"});
    const auto opened = open_snapshot(read_file(server.directory() / "dump.rdb"));
    ASSERT_EQ(opened.refusal, "");
    const auto expected = dump_of(client);
    ASSERT_EQ(test::difference(opened.dump, expected), "");
    // The same key by key, there and back.
    const auto store = open_embedded();
    const Ask ours = [&](auto words) { return store->run(words).get(); };
    const Ask theirs = [&](auto words) { return client.command(words); };
    copy_by_dump(theirs, ours, expected);
    ASSERT_EQ(test::difference(test::dump(ours), expected), "");
    client.command({"FLUSHALL"});
    copy_by_dump(ours, theirs, expected);
    ASSERT_EQ(test::difference(dump_of(client), expected), "");
  }
}

/// --- what is made by hand ---

std::string bytes_of(std::uint64_t value, std::size_t size) {  // least first
  std::string bytes;
  for (; size > 0; --size, value >>= 8) bytes += static_cast<char>(value);
  return bytes;
}
std::string length(std::uint64_t value) {
  if (value < 64) return bytes_of(value, 1);
  if (value < 16384) return bytes_of(0x40 | value >> 8, 1) + bytes_of(value, 1);
  const bool is_short = value <= 0xFFFFFFFF;
  std::string bytes = bytes_of(value, is_short ? 4 : 8);
  std::ranges::reverse(bytes);
  return (is_short ? "\x80"s : "\x81"s) + bytes;
}
std::string text(std::string_view value) { return length(value.size()) + std::string{value}; }
std::string file_of(const std::string& parts, const char* version = "0010") {
  const auto body = "REDIS"s + version + parts + "\xff";
  return body + bytes_of(crc64(0, body), 8);
}
std::string key(char form, std::string_view name, const std::string& value) {
  return std::string{form} + text(name) + value;
}

/// As Redis packs a text that is the number of a certain width.
std::optional<std::int64_t> number_in(const std::string& value) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || std::to_string(number) != value) return std::nullopt;
  return number;
}
bool fits(std::int64_t value, int bits) {
  return value >= -(std::int64_t{1} << (bits - 1)) && value < std::int64_t{1} << (bits - 1);
}

std::string in_ziplist(const std::string& value) {
  if (const auto number = number_in(value)) {
    const auto n = static_cast<std::uint64_t>(*number);
    if (*number >= 0 && *number <= 12) return bytes_of(0xF1 + n, 1);
    if (fits(*number, 8)) return "\xfe"s + bytes_of(n, 1);
    if (fits(*number, 16)) return "\xc0"s + bytes_of(n, 2);
    if (fits(*number, 24)) return "\xf0"s + bytes_of(n, 3);
    if (fits(*number, 32)) return "\xd0"s + bytes_of(n, 4);
    return "\xe0"s + bytes_of(n, 8);
  }
  if (value.size() < 64) return bytes_of(value.size(), 1) + value;
  if (value.size() < 16384)
    return bytes_of(0x40 | value.size() >> 8, 1) + bytes_of(value.size(), 1) + value;
  std::string size = bytes_of(value.size(), 4);
  std::ranges::reverse(size);
  return "\x80"s + size + value;
}
std::string ziplist(const std::vector<std::string>& values) {
  std::string entries;
  std::size_t before = 0;
  std::size_t tail = 10;
  for (const auto& value : values) {
    tail = 10 + entries.size();
    const auto head = before < 254 ? bytes_of(before, 1) : "\xfe"s + bytes_of(before, 4);
    const auto entry = head + in_ziplist(value);
    entries += entry;
    before = entry.size();
  }
  return bytes_of(11 + entries.size(), 4) + bytes_of(tail, 4) + bytes_of(values.size(), 2) +
         entries + "\xff";
}

std::string in_listpack(const std::string& value) {
  if (const auto number = number_in(value)) {
    const auto n = static_cast<std::uint64_t>(*number);
    if (*number >= 0 && *number <= 127) return bytes_of(n, 1);
    if (fits(*number, 13)) return bytes_of(0xC0 | (n >> 8 & 0x1F), 1) + bytes_of(n, 1);
    if (fits(*number, 16)) return "\xf1"s + bytes_of(n, 2);
    if (fits(*number, 24)) return "\xf2"s + bytes_of(n, 3);
    if (fits(*number, 32)) return "\xf3"s + bytes_of(n, 4);
    return "\xf4"s + bytes_of(n, 8);
  }
  if (value.size() < 64) return bytes_of(0x80 | value.size(), 1) + value;
  if (value.size() < 4096)
    return bytes_of(0xE0 | value.size() >> 8, 1) + bytes_of(value.size(), 1) + value;
  return "\xf0"s + bytes_of(value.size(), 4) + value;
}
std::string length_behind(std::size_t size) {
  std::string bytes = bytes_of(size & 0x7F, 1);
  const std::size_t count = size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : 4;
  for (std::size_t i = 1; i < count; ++i) bytes = bytes_of(size >> (7 * i) & 0x7F, 1) + bytes;
  for (std::size_t i = 1; i < count; ++i) bytes[i] = static_cast<char>(bytes[i] | '\x80');
  return bytes;
}
std::string listpack(const std::vector<std::string>& values) {
  std::string entries;
  for (const auto& value : values) {
    const auto entry = in_listpack(value);
    entries += entry + length_behind(entry.size());
  }
  return bytes_of(7 + entries.size(), 4) + bytes_of(values.size(), 2) + entries + "\xff";
}

std::string intset(std::size_t width, std::initializer_list<std::int64_t> values) {
  std::string bytes = bytes_of(width, 4) + bytes_of(values.size(), 4);
  for (const auto value : values) bytes += bytes_of(static_cast<std::uint64_t>(value), width);
  return bytes;
}

const std::vector<std::string> various{"a",
                                       "",
                                       "0",
                                       "12",
                                       "13",
                                       "127",
                                       "128",
                                       "-1",
                                       "-128",
                                       "-129",
                                       "4095",
                                       "4096",
                                       "-4097",
                                       "32767",
                                       "-32769",
                                       "8388607",
                                       "-8388609",
                                       "2147483647",
                                       "-2147483649",
                                       "9223372036854775807",
                                       "007",
                                       std::string(63, 'x'),
                                       std::string(64, 'y'),
                                       std::string(253, 'q'),
                                       std::string(300, 'z'),
                                       std::string(5000, 'w'),
                                       std::string(17'000, 'v')};

std::string texts(const std::vector<std::string>& values, std::size_t words_each) {
  std::string bytes = length(values.size() / words_each);
  for (const auto& value : values) bytes += text(value);
  return bytes;
}
std::vector<std::string> with_numbers(const std::vector<std::string>& values) {
  std::vector<std::string> pairs;
  for (const auto& value : values) {
    pairs.push_back(value);
    pairs.push_back(std::to_string(pairs.size()) + (pairs.size() % 4 == 0 ? ".5" : ""));
  }
  return pairs;
}

/// Every encoding that a redis-server 7.0 still reads.
std::string old_encodings() {
  const auto pairs = with_numbers(various);
  std::string scores;
  std::string old_scores;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    scores += text(pairs[i]) +
              bytes_of(std::bit_cast<std::uint64_t>(std::strtod(pairs[i + 1].c_str(), nullptr)), 8);
    old_scores += text(pairs[i]) + bytes_of(pairs[i + 1].size(), 1) + pairs[i + 1];
  }
  const auto count = length(various.size());
  return "\xfa"s + text("redis-ver") + text("6.2.0") + "\xfe" + length(0) + "\xfb" + length(20) +
         length(1) + key(0, "number 8", "\xc0\x85") + key(0, "number 16", "\xc1\x39\x30") +
         key(0, "number 32", "\xc2"s + bytes_of(static_cast<std::uint64_t>(-70'000), 4)) +
         key(1, "list", texts(various, 1)) + key(2, "set", texts(various, 1)) +
         key(3, "scores as text",
             length(various.size() + 2) + text("most") + "\xfe" + text("least") + "\xff" +
                 old_scores) +
         key(4, "hash", texts(pairs, 2)) + key(5, "scores", count + scores) +
         key(10, "list in a ziplist", text(ziplist(various))) +
         key(11, "numbers 16", text(intset(2, {-5, 1, 300}))) +
         key(11, "numbers 32", text(intset(4, {-70'000, 1}))) +
         key(11, "numbers 64", text(intset(8, {-5'000'000'000, 1}))) +
         key(12, "scores in a ziplist", text(ziplist(pairs))) +
         key(13, "hash in a ziplist", text(ziplist(pairs))) +
         key(14, "lists in ziplists", length(2) + text(ziplist(various)) + text(ziplist({"end"}))) +
         "\xfe" + length(3) + "\xf8" + length(70'000) + "\xfc" + bytes_of(4102444800000, 8) +
         key(16, "hash in a listpack", text(listpack(pairs))) + "\xf9\x05" + "\xfd" +
         bytes_of(2000000000, 4) + key(17, "scores in a listpack", text(listpack(pairs))) +
         key(18, "lists in listpacks",
             length(3) + length(2) + text(listpack(various)) + length(1) +
                 text(std::string(9000, 'p')) + length(2) + text(listpack({"end"})));
}

Dump dump_of_all(const std::function<Value(std::span<const std::string_view>)>& ask) {
  Dump all;
  for (const std::string_view database : {"0", "3"}) {
    const std::string_view select[] = {"SELECT", database};
    static_cast<void>(ask(select));
    for (auto& [name, value] : test::dump(ask)) all[name] = value;
  }
  return all;
}

TEST(Snapshot, EachOlderEncodingOpensEqualToAServer) {
  const auto bytes = file_of(old_encodings());
  const TempDir theirs;
  write_file(theirs / "dump.rdb", bytes);
  const RedisServer server{{"dir " + theirs.str()}};
  PlainClient client{server.port()};
  const auto expected =
      dump_of_all([&](std::span<const std::string_view> words) { return client.command(words); });
  ASSERT_EQ(expected.size(), 18U);
  const TempDir ours;
  write_file(ours / "dump.rdb", bytes);
  const auto store = open_embedded({.path = ours.str(), .fsync = Fsync::never});
  const auto found = test::dump(*store);  // of the database 0; a Store selects none
  for (const auto& [name, value] : found) EXPECT_EQ(value, expected.at(name)) << name;
  EXPECT_EQ(found.size(), 15U);
  const TempDir again;  // the other database is seen by a server that loads our log
  fs::copy(ours.path(), again.path(), fs::copy_options::recursive);
  const RedisServer of_ours{{"dir " + again.str(), "appendonly yes"}};
  PlainClient client_of_ours{of_ours.port()};
  EXPECT_EQ(test::difference(dump_of_all([&](std::span<const std::string_view> words) {
                               return client_of_ours.command(words);
                             }),
                             expected),
            "");
}

/// What Redis 7.2 to 8 write beside it, equal to the same content as 7.0 writes it.
TEST(Snapshot, EachNewerEncodingOpensAsTheOlderOne) {
  const auto pairs = with_numbers(various);
  std::vector<std::string> triples;
  std::string untimed = bytes_of(0, 8) + length(various.size());
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    triples.insert(triples.end(), {pairs[i], pairs[i + 1], "0"});
    untimed += length(0) + text(pairs[i]) + text(pairs[i + 1]);
  }
  const auto newer = open_snapshot(file_of(
      "\xf4"s + length(1) + length(2) + length(3) + key(20, "set", text(listpack(various))) +
          key(24, "hash", untimed) + key(25, "packed", bytes_of(0, 8) + text(listpack(triples))),
      "0012"));
  const auto older =
      open_snapshot(file_of(key(2, "set", texts(various, 1)) + key(4, "hash", texts(pairs, 2)) +
                            key(4, "packed", texts(pairs, 2))));
  EXPECT_EQ(newer.refusal + older.refusal, "");
  EXPECT_EQ(test::difference(newer.dump, older.dump), "");
  EXPECT_EQ(newer.dump.size(), 3U);
}

std::string raw_id(std::uint64_t ms, std::uint64_t number) {
  std::string bytes = bytes_of(number, 8) + bytes_of(ms, 8);
  std::ranges::reverse(bytes);
  return bytes;
}

/// Entries 5-1 (deleted), 5-2, 6-0 and 7-7 in two nodes; 3-0 was trimmed and 6-1 deleted, and both
/// are pending still. `form` 15, 19 or 21: as Redis 5, 7.0 or 7.2 writes it.
std::string stream(char form) {
  const bool is_7 = form != 15;
  const auto nodes = length(2) + text(raw_id(5, 1)) +
                     text(listpack({"2", "1", "2",  "f",    "g",     "0",  //
                                    "3", "0", "0",  "gone", "too",   "5",  //
                                    "2", "0", "1",  "1",    "70000", "5",  //
                                    "0", "1", "-1", "1",    "other", "value", "6"})) +
                     text(raw_id(7, 7)) +
                     text(listpack({"1", "0", "1", "f", "0", "2", "0", "0", "last", "4"}));
  const auto counts = length(3) + length(7) + length(7);
  const auto counts_of_7 = length(5) + length(2) + length(6) + length(1) + length(9);
  const auto pending = [](std::uint64_t ms, std::uint64_t number, std::uint64_t deliveries) {
    return raw_id(ms, number) + bytes_of(1700000000000 + ms, 8) + length(deliveries);
  };
  const auto seen = bytes_of(1700000000000, 8) + (form == 21 ? bytes_of(1700000000000, 8) : ""s);
  return nodes + counts + (is_7 ? counts_of_7 : ""s) + length(2) +  //
         text("group") + length(6) + length(1) + (is_7 ? length(7) : ""s) + length(3) +
         pending(3, 0, 2) + pending(5, 2, 1) + pending(6, 1, 9) + length(3) +  //
         text("one") + seen + length(2) + raw_id(3, 0) + raw_id(6, 1) +        //
         text("two") + seen + length(1) + raw_id(5, 2) +                       //
         text("idle") + seen + length(0) +                                     //
         text("new") + length(0) + length(0) + (is_7 ? length(0) : ""s) + length(0) + length(0);
}

TEST(Snapshot, StreamsOfEachVersionOpenEqualToAServer) {
  const auto nothing = length(0) + length(0) + length(9) + length(9) + length(0) + length(0) +
                       length(8) + length(0) + length(9) + length(0);
  const auto bytes = file_of(key(15, "of 5", stream(15)) + key(19, "of 7", stream(19)) +
                             key(19, "empty", nothing));
  const TempDir theirs;
  write_file(theirs / "dump.rdb", bytes);
  const RedisServer server{{"dir " + theirs.str()}};
  PlainClient client{server.port()};
  auto expected = dump_of(client);
  // Redis 5 does not say what was deleted; an entry that is pending and gone tells of itself.
  auto& old = expected["of 5"];
  old.replace(old.find("max-deleted-entry-id=0-0"), 24, "max-deleted-entry-id=6-1");
  auto opened = open_snapshot(bytes);
  EXPECT_EQ(opened.refusal, "");
  EXPECT_EQ(test::difference(opened.dump, expected), "");
  auto later = open_snapshot(file_of(key(21, "of 7", stream(21)), "0011"));
  EXPECT_EQ(later.dump["of 7"], opened.dump["of 7"]) << later.refusal;
}

/// --- what is refused ---

TEST(Snapshot, WhatTheEngineDoesNotHaveIsRefusedByName) {
  const auto refusal = [](const std::string& parts, const char* version = "0010") {
    return open_snapshot(file_of(key(0, "first", text("value")) + parts, version)).refusal;
  };
  const auto module = "\x81\x84\x29\x2a\x4b\x63\x1d\x3c\x05"s;
  for (const auto& [parts, version, words] :
       {std::tuple{"\xf6"s + text("x"), "0010", "a library of functions"},
        std::tuple{"\xf7" + module, "0010", "data of the module '"},
        std::tuple{key(7, "filter", module), "0010", "the key 'filter' of the module type '"},
        std::tuple{key(24, "h", bytes_of(7, 8) + length(1) + length(1) + text("f") + text("v")),
                   "0012", "a field of the hash 'h' with a time of its own"},
        std::tuple{key(25, "h", bytes_of(7, 8) + text(listpack({"f", "v", "1700000000000"}))),
                   "0012", "a field of the hash 'h' with a time of its own"},
        std::tuple{key(9, "zipmap", text("x")), "0010", "the key 'zipmap' of type 9"},
        std::tuple{key(99, "later", text("x")), "0010", "the key 'later' of type 99"},
        std::tuple{""s, "0080", "a snapshot of version 80"}}) {
    const auto said = refusal(parts, version);
    EXPECT_NE(said.find(words), std::string::npos) << words << ": " << said;
    EXPECT_NE(said.find("dump.rdb has "), std::string::npos) << said;
    EXPECT_NE(said.find("nothing was changed"), std::string::npos) << said;
  }
}

TEST(Snapshot, CutOrChangedAtAnyByteItIsRefused) {
  const auto whole = file_of(key(0, "text", text("value")) + "\xfc" + bytes_of(4102444800000, 8) +
                             key(13, "hash", text(ziplist({"f", "1", "g", "long enough"}))) +
                             key(17, "scores", text(listpack({"m", "1.5"}))) +
                             key(11, "numbers", text(intset(2, {1, 2}))));
  ASSERT_EQ(open_snapshot(whole).refusal, "");
  for (std::size_t i = 9; i < whole.size(); ++i) {
    EXPECT_NE(open_snapshot(whole.substr(0, i)).refusal, "") << i;
    auto changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    EXPECT_NE(open_snapshot(changed).refusal, "") << i;
  }
  EXPECT_NE(open_snapshot(whole + "*1\r\n$4\r\nPING\r\n").refusal.find("behind the snapshot"),
            std::string::npos);
}

/// What RESTORE is asked beside values that are right.
TEST(Snapshot, RestoreAnswersAsAServer) {
  const RedisServer server;
  PlainClient client{server.port()};
  const TempDir folder;
  const auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
  const auto sealed = [](std::string value, std::uint64_t version = 10) {
    value += bytes_of(version, 2);
    return value + bytes_of(crc64(0, value), 8);
  };
  const auto list = sealed("\x0e"s + length(1) + text(ziplist({"a", "b"})));
  const std::vector<std::vector<std::string>> dialog{
      {"RESTORE", "k", "0", list},
      {"RESTORE", "k", "0", list},
      {"RESTORE", "k", "-1", list, "REPLACE"},
      {"RESTORE", "k", "x", list, "REPLACE"},
      {"RESTORE", "k", "0", list, "REPLACED"},
      {"RESTORE", "k", "0", list, "REPLACE", "IDLETIME", "-1"},
      {"RESTORE", "k", "0", list, "REPLACE", "FREQ", "256"},
      {"RESTORE", "k", "0", list, "REPLACE", "IDLETIME", "1"},
      {"RESTORE", "k", "0", list.substr(1), "REPLACE"},
      {"RESTORE", "k", "0", "short", "REPLACE"},
      {"RESTORE", "k", "0", sealed("\x0e"s + length(2) + text(ziplist({"a"}))), "REPLACE"},
      {"RESTORE", "k", "0", sealed("\x00"s + text("v"), 99), "REPLACE"},
      {"RESTORE", "k", "0", sealed("\x02"s + length(0)), "REPLACE"},
      {"LRANGE", "k", "0", "-1"},
      {"EVAL", "redis.call('RESTORE', KEYS[1], 100000, ARGV[1]) return redis.call('LLEN', 'e')",
       "1", "e", list},
      {"RESTORE", "k", "1", sealed("\x00"s + text("v")), "REPLACE", "ABSTTL"},
      {"EXISTS", "k"},
      {"DUMP", "k"},
      {"RESTORE", "k", "2000000000000", sealed("\x00"s + text("v")), "ABSTTL"},
      {"SET", "n", "1"},
      {"RESTORE", "n", "0", list, "REPLACE"}};
  for (const auto& words : dialog) {
    const std::vector<std::string_view> views{words.begin(), words.end()};
    const Value theirs = client.command(std::span<const std::string>{words});
    try {
      EXPECT_EQ(to_string(store->run(views).get()), to_string(theirs)) << words[0] << words[1];
    } catch (const Error& error) {
      EXPECT_TRUE(theirs.is_error()) << words[0] << words[1] << ": " << error.message();
      if (theirs.is_error())
        EXPECT_NE(error.message().find(theirs.as_text()), std::string::npos) << error.message();
    }
  }
  const TempDir copy;
  fs::copy(folder.path(), copy.path(), fs::copy_options::recursive);
  auto before = dump_of(client);
  auto found = test::dump(*open_embedded({.path = copy.str()}));
  for (auto* const all : {&before, &found}) EXPECT_EQ(all->erase("e"), 1U);  // times of its own
  EXPECT_EQ(test::difference(found, before), "") << "after it was loaded again";
}

/// Whatever stands under a right checksum: it is refused and nothing is changed, or it is a value
/// like any other.
TEST(Snapshot, AnyBytesAsAValueAreRefusedWholeOrTaken) {
  const auto pairs = with_numbers({"a", "12", "-70000", std::string(70, 'x')});
  const std::vector<std::string> values{
      "\x0d"s + text(ziplist(pairs)),
      "\x11"s + text(listpack(pairs)),
      "\x12"s + length(2) + length(2) + text(listpack(various)) + length(1) + text("plain"),
      "\x0b"s + text(intset(2, {1, 5})),
      "\x13"s + stream(19),
      "\x0f"s + stream(15),
      "\x00\xc3"s + length(9) + length(20) + "\x01" + "ab" + "\xe0\x07\x01" + "\x00" + "z" +
          "\x00"};
  const auto store = open_embedded();
  std::mt19937_64 random{7};
  int taken = 0;
  for (int i = 0; i < sluice::test::rounds(20'000); ++i) {
    auto value = values[random() % values.size()];
    for (auto left = random() % 3; left <= 3; ++left)
      value[random() % value.size()] = static_cast<char>(random());
    value += bytes_of(10, 2);
    value += bytes_of(crc64(0, value), 8);
    store->run({"SET", "k", "old"}).get();
    try {
      store->run({"RESTORE", "k", "0", value, "REPLACE"}).get();
      const auto before = test::dump(*store);
      const auto again = store->run({"DUMP", "k"}).get().as_text();
      store->run({"RESTORE", "k", "0", again, "REPLACE"}).get();
      ASSERT_EQ(test::difference(test::dump(*store), before), "") << i;
      ++taken;
    } catch (const Error& error) {
      ASSERT_EQ(store->run({"GET", "k"}).get(), Value::bulk_string("old")) << error.message();
    }
  }
  EXPECT_GT(taken, 50);
}

TEST(Snapshot, OfSeveralNoneIsChosen) {
  const TempDir folder;
  for (const char* const name : {"dump.rdb", "older.rdb"})
    write_file(folder / name, file_of(key(0, "k", text("v"))));
  try {
    open_embedded({.path = folder.str()});
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument) << error.message();
  }
}

}  // namespace
}  // namespace sluice::engine
