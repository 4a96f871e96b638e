/// The answers of a real server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"
#include "topology/cluster_map.hpp"
#include "topology/sentinel_view.hpp"

namespace sluice::topology::test {
namespace {

/// A cluster of one node, which has all slots.
class OneNode : public testing::Test {
 protected:
  OneNode() {
    client_.command({"CLUSTER", "ADDSLOTSRANGE", "0", "99", "200", "16383"});
    client_.command({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
  }

  ClusterView view(Form form) {
    std::vector<Value> replies;
    for (const auto& command : commands_of(form)) replies.push_back(client_.command(command));
    return view_of(replies, form, answerer_, false);
  }
  void set(std::string_view name, std::string_view value) {
    EXPECT_EQ(client_.command({"CONFIG", "SET", name, value}), Value::simple_string("OK"));
  }

  sluice::test::RedisServer server_{
      {"cluster-enabled yes", fmt::format("cluster-port {}", sluice::test::free_port())}};
  sluice::test::PlainClient client_{server_.port()};
  Endpoint answerer_{"localhost", server_.port()};
};

TEST_F(OneNode, TellsItsMapInAllForms) {
  ASSERT_TRUE(sluice::test::comes_true([&] { return view(Form::shards).is_ok; }));
  for (const auto* const protocol : {"2", "3"}) {
    client_.command({"HELLO", protocol});
    for (const auto form : {Form::shards, Form::slots}) {
      const auto told = view(form);
      ASSERT_EQ(told.nodes.size(), 1U);
      EXPECT_TRUE(told.is_ok);
      EXPECT_TRUE(told.nodes[0].is_answerer);
      EXPECT_EQ(told.nodes[0].slots, (std::vector<SlotRange>{{0, 99}, {200, 16383}}));
      EXPECT_EQ(told.nodes[0].node.id, client_.command({"CLUSTER", "MYID"}).as_text());
      const auto map = ClusterMap{}.merged({&told, 1});
      EXPECT_EQ(map.uncovered(), 100U);
      EXPECT_EQ(map.owner(hash_slot("{123456789}")), map.find(told.nodes[0].node.id));
    }
  }
  EXPECT_EQ(client_.command({"CLUSTER", "KEYSLOT", "}{a}{b}"}),
            Value::integer(hash_slot("}{a}{b}")));
}

TEST_F(OneNode, T03_TellsItsEndpointAsItIsPreferred) {
  const auto endpoint = [&](Form form) { return view(form).nodes.at(0).node.endpoint; };
  for (const auto form : {Form::shards, Form::slots}) {
    set("cluster-preferred-endpoint-type", "unknown-endpoint");
    EXPECT_EQ(endpoint(form), answerer_);
    set("cluster-preferred-endpoint-type", "hostname");
    set("cluster-announce-hostname", "");
    EXPECT_EQ(endpoint(form), std::nullopt) << "none is announced";
    set("cluster-announce-hostname", "db.example");
    EXPECT_EQ(endpoint(form), (Endpoint{"db.example", server_.port()}));
    EXPECT_EQ(view(form).nodes[0].node.hostname, "db.example");
    set("cluster-preferred-endpoint-type", "ip");
    set("cluster-announce-ip", "10.0.0.7");
    EXPECT_EQ(endpoint(form), (Endpoint{"10.0.0.7", server_.port()}));
  }
}

TEST(ManyRanges, T20_AMapOf16384RangesIsRead) {
  const sluice::test::TempDir folder;
  const auto file = folder / "nodes.conf";
  const auto port = sluice::test::free_port();
  const std::string even(40, 'a');
  const std::string odd(40, 'b');
  {
    std::ofstream out{file};
    const auto line = [&](const std::string& id, const std::string& rest, int first) {
      out << id << ' ' << rest;
      for (int slot = first; slot < hash_slots; slot += 2) out << ' ' << slot;
      out << '\n';
    };
    line(even, fmt::format("127.0.0.1:1@{} myself,master - 0 0 2 connected", port), 0);
    line(odd, "127.0.0.1:7@17 master - 0 0 1 connected", 1);
    out << "vars currentEpoch 2 lastVoteEpoch 0\n";
  }
  sluice::test::RedisServer server{{"cluster-enabled yes", fmt::format("cluster-port {}", port),
                                    "cluster-config-file " + file.string(),
                                    "cluster-node-timeout 600000",
                                    "cluster-require-full-coverage no"}};
  sluice::test::PlainClient client{server.port()};
  const Endpoint answerer{"127.0.0.1", server.port()};
  for (const auto form : {Form::shards, Form::slots}) {
    std::vector<Value> replies;
    for (const auto& command : commands_of(form)) replies.push_back(client.command(command));
    // It says so two seconds after its start.
    replies[2] = Value::bulk_string("cluster_state:ok\r\ncluster_current_epoch:2\r\n");
    const auto told = view_of(replies, form, answerer, false);
    const auto map = ClusterMap{}.merged({&told, 1});
    for (std::uint16_t slot = 0; slot < hash_slots; ++slot)
      ASSERT_TRUE(map.owner(slot) && map.owner(slot)->id == (slot % 2 == 0 ? even : odd)) << slot;
    EXPECT_EQ(map.slots_of(*map.find(even)).size(), 8192U);
    EXPECT_EQ(map.find(even)->endpoint, answerer);
  }
}

TEST_F(OneNode, TellsItsRole) {
  EXPECT_TRUE(parse_role(client_.command({"ROLE"}), answerer_).is_master);
}

}  // namespace
}  // namespace sluice::topology::test
