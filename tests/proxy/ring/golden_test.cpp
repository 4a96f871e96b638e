// Where nutcracker 0.5.0 on x86-64 has sent keys: golden/twemproxy_map.json says how it was
// recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proxy/ring/ring.hpp"
#include "support/paths.hpp"

namespace sluice::proxy {
namespace {

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

struct Member {
  RingServer server;
  char digit;  // its place in the file, as the maps name it
};

/// In twemproxy's order: the length of the name, then its bytes.
std::vector<Member> members_of(const nlohmann::json& set) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < set["names"].size(); ++i)
    members.push_back({{set["names"][i], set["weights"][i]}, static_cast<char>('0' + i)});
  std::ranges::sort(members, {}, [](const Member& member) {
    return std::pair{member.server.name.size(), member.server.name};
  });
  return members;
}

std::optional<HashTag> tag_of(const nlohmann::json& set) {
  if (set["hash_tag"].is_null()) return std::nullopt;
  const std::string text = set["hash_tag"];
  return HashTag{text.at(0), text.at(1)};
}

std::vector<std::string> words_of(std::string text) {
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (c == '/')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

TEST(Golden, EveryKeyIsWhereTwemproxyHasIt) {
  std::ifstream file{test::source_path("tests/proxy/ring/golden/twemproxy_map.json")};
  const auto golden = nlohmann::json::parse(file);
  std::size_t maps = 0;
  for (const auto& [name, digits] : golden["map"].items()) {
    const auto words = words_of(name);  // hash/distribution/set
    const auto& set = golden["server_sets"][words.at(2)];
    const auto members = members_of(set);
    std::vector<RingServer> servers;
    for (const auto& member : members) servers.push_back(member.server);
    const Homes homes{find_hash(words.at(0)).value(), CharSign::is_signed, tag_of(set),
                      Ring{find_distribution(words.at(1)).value(), servers}, servers.size() == 1};
    std::string ours;
    for (const auto& key : golden["keys"])
      ours += members.at(homes.of(bytes_of(key.get<std::string>()))).digit;
    EXPECT_EQ(ours, digits.get<std::string>()) << name;
    ++maps;
  }
  EXPECT_EQ(maps, 48U);
}

}  // namespace
}  // namespace sluice::proxy
