// The same stream for nutcracker and for our proxy in strict mode before servers of memcached:
// every reply is the same to the byte, and the connection ends at the same request.
#include <gtest/gtest.h>

#include "proxy/flow/strict_stream.hpp"
#include "proxy/support/memcached.hpp"

namespace sluice::test {
namespace {

constexpr std::string_view patterns[] = {
    "get <key>",
    "get <key>",
    "get <key..>",
    "get <key..>",
    "gets <key>",
    "gets <key..>",
    "get <missing..>",
    "delete <key>",
    "incr <number> <delta>",
    "decr <number> <delta>",
    "incr <key> <delta>",
    "touch <key> 1000000",
    "delete <key> noreply",
    "incr <number> <delta> noreply",
    "touch <key> 1000000 noreply",
    "version",
    "DATA set <key> <flags> 0",
    "DATA set <key> <flags> 0",
    "DATA set <key> <flags> 0 noreply",
    "DATA add <key> <flags> 0",
    "DATA replace <key> <flags> 0",
    "DATA append <key> <flags> 0",
    "DATA prepend <key> <flags> 0",
    "DATA set <key> <flags> 1000000",
    "DATA cas <key> <flags> 0 <unique>",
    "NUMBER set <number> 0 0",
    "NUMBER add <number> 0 0",
};

constexpr std::string_view endings[] = {
    "quit", "stats",  "flush_all",  "gat 0 key:1", "mg key:1 v", "GET key:1",
    "get",  "nosuch", "incr key:1", "verbosity 1", "delete",     "set key:1 0 0 x",
};

Vocabulary vocabulary() {
  const auto named = [](std::string_view family, std::size_t many) -> WordMaker {
    return [=](Random& random) { return fmt::format("{}:{}", family, up_to(random, many)); };
  };
  const auto number = [](std::size_t most) -> WordMaker {
    return [=](Random& random) { return std::to_string(up_to(random, most)); };
  };
  return {{"key", named("key", 40)},       {"missing", named("missing", 40)},
          {"number", named("number", 10)}, {"delta", number(100)},
          {"flags", number(65535)},        {"unique", number(400)}};
}

class StrictMemcached : public StrictStream<Memcached> {
 protected:
  std::string request(std::string_view pattern) {
    const auto words = fill(pattern, words_, random_, 20);
    std::string line, data;
    for (const auto& word : words) {
      if (word == "DATA")
        data = random_value(random_);
      else if (word == "NUMBER")
        data = std::to_string(up_to(random_, 100000));
      else if (word == "noreply" && words.front() == "DATA")
        continue;  // stands behind the size
      else
        line += (line.empty() ? "" : " ") + word;
    }
    if (words.front() != "DATA" && words.front() != "NUMBER") return line + "\r\n";
    const auto size = ' ' + std::to_string(data.size());
    line.insert(line.starts_with("cas ") ? line.rfind(' ') : line.size(), size);
    if (words.back() == "noreply") line += " noreply";
    return line + "\r\n" + data + "\r\n";
  }
  Batch batch(std::size_t requests) override {
    Batch batch;
    for (; requests > 0; --requests) {
      const auto pattern = patterns[up_to(random_, std::size(patterns) - 1)];
      if (has_failed_server_ && pattern.ends_with("..>")) continue;  // it comes last then
      if (!has_uniques_ && (pattern.starts_with("gets") || pattern.starts_with("DATA cas")))
        continue;
      batch.add(request(pattern), !pattern.ends_with("noreply"));
    }
    batch.add(request("version"), true);  // behind those that have no reply
    if (has_failed_server_) batch.add(request("get <key..>"), true);
    return batch;
  }
  Batch ending() override {
    Batch batch;
    for (auto before = up_to(random_, 3); before > 0; --before)
      batch.add("set key:1 0 0 3\r\nend\r\n", true);
    batch.add(request(endings[up_to(random_, std::size(endings) - 1)]), true);
    batch.add("get key:1\r\n", true);
    return batch;
  }
  Vocabulary words_ = vocabulary();
  bool has_uniques_ = true;
};

TEST_F(StrictMemcached, EveryReplyIsTwemproxys) {
  Sides sides{3, {"hash: fnv1a_64", "distribution: ketama"}};
  compare(sides, longer(80));
}

TEST_F(StrictMemcached, EveryReplyIsTwemproxysWithModula) {
  Sides sides{2, {"hash: crc16", "distribution: modula"}};
  compare(sides, longer(30));
}

TEST_F(StrictMemcached, X25_EachByteOfARequestIsReadAsTwemproxyReadsIt) {
  Sides sides{1, {"redis: false"}};
  const auto could_end_elsewhere = [](std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at)
      if (bytes[at] == '\0' || (bytes[at] == '\n') != (at > 0 && bytes[at - 1] == '\r'))
        return true;
    return false;
  };
  for (const std::string_view request :
       {"get a b\r\n", "set b 0 0 2\r\nxy\r\n", "delete a noreply\r\n", "incr n 1\r\n"})
    compare_bytes(sides, request, "get b\r\n", could_end_elsewhere);
}

TEST_F(StrictMemcached, WithADeadServer) {
  Sides sides{3, {"hash: fnv1a_64"}};
  compare(sides, longer(5));
  sides.kill(1);
  has_failed_server_ = true;
  sides.await_reply("get " + sides.key_of(1) + "\r\n", "SERVER_ERROR Connection refused\r\n");
  compare(sides, longer(15));
  sides.start(1);
  has_failed_server_ = false;
  sides.await_reply("get " + sides.key_of(1) + "\r\n", "END\r\n");
  compare(sides, longer(15));
}

TEST_F(StrictMemcached, WithAServerThatHangs) {
  Sides sides{3, {"timeout: 150"}};
  has_uniques_ = false;  // they differ once one side has done more than the other
  compare(sides, longer(5));
  compare_hung(sides, {"get " + sides.key_of(0) + "\r\n",
                       "get " + sides.key_of(0) + ' ' + sides.key_of(1) + "\r\n"});
  sides.empty();
}

}  // namespace
}  // namespace sluice::test
