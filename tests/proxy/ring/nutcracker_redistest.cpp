// Our homes beside those of a real nutcracker, for random pools: names, weights, ports, unix
// sockets, tags, binary keys.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "proxy/config/read.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/telling_servers.hpp"
#include "resp/writer.hpp"
#include "support/plain_client.hpp"

namespace sluice::proxy {
namespace {

using Random = std::mt19937;

std::size_t up_to(Random& random, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>{0, most}(random);
}

std::vector<std::string> wanted_addresses() {
  std::vector<std::string> wanted{"127.19.1.1:11211", "127.19.200.2:11211", "/a.sock", "/bb.sock"};
  for (int i = 1; i <= 10; ++i) wanted.push_back(fmt::format("127.{}.0.{}:0", i * i, i));
  return wanted;
}

struct RandomPool {
  std::vector<std::string> lines;         // as Nutcracker takes them
  std::vector<std::size_t> told_numbers;  // by the place in the file
};

std::string random_name(Random& random) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  std::string name;
  for (auto left = 1 + up_to(random, 40); left > 0; --left)
    name += letters[up_to(random, letters.size() - 1)];
  return name;
}

std::uint32_t random_weight(Random& random) {
  static constexpr std::size_t most[] = {1, 3, 10, 1000};
  return static_cast<std::uint32_t>(1 + up_to(random, most[up_to(random, 3)]));
}

constexpr std::string_view tags[] = {"{}", "$$", "::", "<>", "ab"};

RandomPool random_pool(Random& random, Hash hash, Distribution distribution,
                       const test::TellingServers& servers) {
  RandomPool pool;
  pool.lines = {"redis: true", fmt::format("hash: {}", to_string(hash)),
                fmt::format("distribution: {}", to_string(distribution))};
  if (up_to(random, 1) == 0)
    pool.lines.push_back(fmt::format("hash_tag: \"{}\"", tags[up_to(random, std::size(tags) - 1)]));
  pool.lines.emplace_back("servers:");
  for (std::size_t i = 0; i < servers.addresses().size(); ++i) pool.told_numbers.push_back(i);
  std::ranges::shuffle(pool.told_numbers, random);
  pool.told_numbers.resize(2 + up_to(random, pool.told_numbers.size() - 2));
  for (const auto number : pool.told_numbers)
    pool.lines.push_back(fmt::format(  // nutcracker takes no name twice
        " - {}:{}{}", servers.addresses()[number], random_weight(random),
        up_to(random, 1) == 0 ? "" : fmt::format(" {}-{}", random_name(random), number)));
  return pool;
}

/// Words, numbers, any bytes, and now and then what may be a tag.
std::string random_key(Random& random) {
  std::string key;
  const auto form = up_to(random, 3);
  for (auto left = 1 + up_to(random, 40); left > 0; --left)
    key += form == 0 ? static_cast<char>(up_to(random, 255))
                     : static_cast<char>('a' + up_to(random, 25));
  if (form == 1) key = "key:" + std::to_string(up_to(random, 1'000'000));
  if (form == 2)
    for (const char c : tags[up_to(random, std::size(tags) - 1)])
      key.insert(up_to(random, key.size()), 1, c);
  return key;
}

/// The numbers that the servers told, a key each, in order.
std::vector<std::size_t> told(test::PlainClient& client, const std::vector<std::string>& keys) {
  constexpr std::size_t batch = 1000;
  std::vector<std::size_t> numbers;
  for (std::size_t at = 0; at < keys.size(); at += batch) {
    const auto end = std::min(keys.size(), at + batch);
    std::string requests;
    for (auto i = at; i < end; ++i)
      resp::append_command(requests, std::vector<std::string_view>{"GET", keys[i]});
    client.send(requests);
    for (auto i = at; i < end; ++i)
      numbers.push_back(static_cast<std::size_t>(client.read().as_integer()));
  }
  return numbers;
}

TEST(BesideNutcracker, NoKeyOfTwoHundredThousandIsElsewhere) {
  constexpr std::size_t keys_a_pool = 8400;
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random{seed};
  const test::TellingServers servers{wanted_addresses()};
  std::size_t asked = 0;
  for (const auto hash : all_hashes()) {
    for (const auto distribution : {Distribution::ketama, Distribution::modula}) {
      const auto pool = random_pool(random, hash, distribution, servers);
      const test::Nutcracker nutcracker{pool.lines};
      SCOPED_TRACE(nutcracker.config());
      std::vector<std::string> keys(keys_a_pool);
      std::ranges::generate(keys, [&] { return random_key(random); });

      const auto config = config::read(nutcracker.config(), "nutcracker.yml");
      const auto& settings = config.pools.at(0);
      const auto homes = make_homes(settings);
      test::PlainClient client{nutcracker.port()};
      const auto numbers = told(client, keys);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto& home = settings.servers.at(homes.of(keys[i]));
        ASSERT_EQ(pool.told_numbers.at(home.place.position), numbers[i])
            << testing::PrintToString(keys[i]);
      }
      asked += keys.size();
    }
  }
  EXPECT_GE(asked, 200'000U);
}

TEST(BesideNutcracker, RandomSpreadsEvenlyWhateverTheWeights) {
  const test::TellingServers servers{{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}};
  std::vector<std::string> lines{"redis: true", "distribution: random", "servers:"};
  for (std::size_t i = 0; i < 3; ++i)
    lines.push_back(fmt::format(" - {}:{}", servers.addresses()[i], i == 0 ? 1000 : 1));
  const test::Nutcracker nutcracker{lines};
  test::PlainClient client{nutcracker.port()};
  constexpr std::size_t asked = 6000;
  std::map<std::size_t, std::size_t> theirs;
  for (const auto number : told(client, std::vector<std::string>(asked, "the same key")))
    ++theirs[number];

  const auto config = config::read(nutcracker.config(), "nutcracker.yml");
  const auto homes = make_homes(config.pools.at(0));
  std::map<std::size_t, std::size_t> ours;
  Random random{7};
  for (std::size_t i = 0; i < asked; ++i)
    ++ours[homes.of("the same key", static_cast<std::uint32_t>(random()))];
  for (const auto& hits : {theirs, ours}) {
    ASSERT_EQ(hits.size(), 3U);
    for (const auto& [server, count] : hits) EXPECT_NEAR(static_cast<double>(count), 2000, 300);
  }
}

}  // namespace
}  // namespace sluice::proxy
