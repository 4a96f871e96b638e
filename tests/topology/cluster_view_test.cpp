#include <gtest/gtest.h>

#include "support/matchers.hpp"
#include "topology/views.hpp"

namespace sluice::topology::test {
namespace {

using testing::HasSubstr;

Value resp_map(Value::Items items) { return Value::aggregate(Value::Type::map, std::move(items)); }

TEST(Endpoints, AreWrittenAndTold) {
  EXPECT_EQ(to_string(Endpoint{"::1", 7000}), "[::1]:7000");
  EXPECT_EQ(to_string(at(7000)), "10.0.0.1:7000");
  EXPECT_EQ(told_host("db1", answerer), "db1");
  EXPECT_EQ(told_host("", answerer), "10.0.0.9") << "the one that has answered";
  EXPECT_EQ(told_host("?", answerer), std::nullopt);
  EXPECT_THAT(error_of([] { return told_host("a b", answerer); }), HasSubstr("10.0.0.9:7009"));
  EXPECT_NE(error_of([] { return told_host(std::string(300, 'a'), answerer); }), "");
}

TEST(Redirections, AreRead) {
  const auto read = [](std::string_view error) { return parse_redirection(error, answerer); };
  EXPECT_EQ(read("MOVED 3999 10.0.0.1:6381"),
            (Redirection{.is_ask = false, .slot = 3999, .to = Endpoint{"10.0.0.1", 6381}}));
  EXPECT_EQ(read("ASK 16383 ::1:7000"),
            (Redirection{.is_ask = true, .slot = 16383, .to = Endpoint{"::1", 7000}}));
  EXPECT_EQ(read("MOVED 449 :7001")->to, (Endpoint{"10.0.0.9", 7001})) << "T03";
  EXPECT_EQ(read("MOVED 449 ?:7002")->to, std::nullopt) << "T03";
  EXPECT_EQ(read("TRYAGAIN Multiple keys request during rehashing of slot"), std::nullopt);
  for (const auto* const wrong :
       {"MOVED ", "MOVED 1", "MOVED x 10.0.0.1:1", "MOVED 16384 10.0.0.1:1", "MOVED 1 10.0.0.1",
        "MOVED 1 10.0.0.1:0", "MOVED 1 10.0.0.1:65536", "MOVED 1 a b:7", "ASK -1 a:7", "MOVED :7 x",
        "MOVED 1:7"})
    EXPECT_NE(error_of([&] { return read(wrong); }), "") << wrong;
}

TEST(Nodes, AreReadAsRedis7TellsThem) {
  const auto nodes = parse_nodes(
      text("4a25 127.0.0.1:7801@17801 myself,master - 0 1795437874000 1 connected 0-5460 5462 "
           "[93->-6e02] [94-<-6e02]\n"
           "c543 127.0.0.1:7806@17806,db6,shard-id=88 slave,fail? 4a25 0 17954 1 connected\n"
           "6e02 ::1:7802@17802,,tls-port=0 master,fail - 1 2 2 disconnected 5461\n"
           "bc97 :0@0 master,noaddr - 1 2 0 disconnected\n"
           "79d6 :7805@17805 slave - 0 0 2 connected\n"
           "ffff 127.0.0.1:7807@17807 handshake - 0 0 0 disconnected\n"),
      answerer);
  ASSERT_EQ(nodes.size(), 5U) << "one in handshake is none yet";
  EXPECT_TRUE(nodes[0].is_answerer);
  EXPECT_EQ(nodes[0].slots, (std::vector<SlotRange>{{0, 5460}, {5462, 5462}}));
  EXPECT_EQ(nodes[0].node.epoch, 1U);
  EXPECT_EQ(nodes[1].node.hostname, "db6");
  EXPECT_EQ(nodes[1].node.master, "4a25");
  EXPECT_EQ(nodes[1].node.role, Role::replica);
  EXPECT_EQ(nodes[1].node.health, Health::suspected);
  EXPECT_EQ(nodes[2].node.endpoint, (Endpoint{"::1", 7802}));
  EXPECT_EQ(nodes[2].node.health, Health::failed);
  EXPECT_EQ(nodes[3].node.endpoint, std::nullopt);
  EXPECT_EQ(nodes[4].node.endpoint, (Endpoint{"10.0.0.9", 7805})) << "T03";
}

TEST(Nodes, ThatAreNoneAreRefused) {
  const auto refused = [](std::string_view nodes) {
    return error_of([&] { return parse_nodes(text(nodes), answerer); });
  };
  EXPECT_THAT(refused(line(1, 1, " 0-5") + line(2, 2, " 5")), HasSubstr("slot 5 has two owners"));
  EXPECT_THAT(refused(line(1, 1, " 0-5")), "");
  EXPECT_THAT(refused(line(1, 1) + line(1, 1)), HasSubstr("there twice"));
  EXPECT_THAT(refused(line(1, 1, " 0", 2)), HasSubstr("has slots"));
  EXPECT_THAT(refused(line(1, 1, " 0-16384")), HasSubstr("0-16384 are no slots"));
  EXPECT_THAT(refused(line(1, 1, " 5-4")), HasSubstr("no slots"));
  EXPECT_THAT(refused(line(1, 1, " x")), HasSubstr("'x'"));
  EXPECT_THAT(refused(line(1, 1).substr(0, 60)), HasSubstr("no config epoch"));
  EXPECT_THAT(refused("abc 10.0.0.1 master - 0 0 1 connected"), HasSubstr("no port"));
  EXPECT_THAT(refused("abc 10.0.0.1:70000@1 master - 0 0 1 connected"), HasSubstr("70000"));
  EXPECT_THAT(refused("abc a/b:7000@1 master - 0 0 1 connected"), HasSubstr("host"));
  EXPECT_THAT(refused(std::string(65, 'a') + " h:7@1 master - 0 0 1 connected"), HasSubstr("id"));
  EXPECT_THAT(refused(std::string(most_nodes_text + 1, '\n')), HasSubstr("are the most"));
  std::string many;
  for (std::size_t i = 0; i <= most_nodes; ++i)
    many += fmt::format("{} h:7@1 master - 0 0 1 c\n", i);
  EXPECT_THAT(refused(many), HasSubstr("more than 10000 nodes"));
  EXPECT_THAT(error_of([] { return parse_nodes(number(1), answerer); }),
              HasSubstr("10.0.0.9:7009 gives no map of its cluster in CLUSTER NODES"));
}

Value node_of_shard(std::string_view id, std::int64_t port, std::string_view role, Value endpoint,
                    std::string_view health = "online") {
  return resp_map({text("id"), text(id), text("port"), number(port), text("tls-port"),
                   number(port + 1000), text("ip"), text("10.0.0.1"), text("endpoint"),
                   std::move(endpoint), text("hostname"), text("db.example"), text("role"),
                   text(role), text("replication-offset"), number(77), text("health"),
                   text(health)});
}

Value shard(Value::Items slots, Value::Items nodes) {
  return resp_map({text("slots"), Value::array(std::move(slots)), text("nodes"),
                   Value::array(std::move(nodes))});
}

TEST(Shards, AreRead) {
  const auto reply =
      Value::array({shard({number(0), number(5), number(9), number(9)},
                          {node_of_shard("old", 7000, "master", text("10.0.0.1"), "fail"),
                           node_of_shard("new", 7001, "master", text("10.0.0.1")),
                           node_of_shard("rep", 7002, "replica", Value{}, "loading"),
                           node_of_shard("unk", 7003, "replica", text("?"))})});
  const auto nodes = parse_shards(reply, answerer, false);
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_TRUE(nodes[0].slots.empty());
  EXPECT_EQ(nodes[1].slots, (std::vector<SlotRange>{{0, 5}, {9, 9}})) << "the live master's";
  EXPECT_EQ(nodes[1].node.endpoint, at(7001));
  EXPECT_EQ(nodes[1].node.hostname, "db.example");
  EXPECT_EQ(nodes[2].node.endpoint, (Endpoint{"10.0.0.9", 7002})) << "T03";
  EXPECT_EQ(nodes[2].node.master, "new");
  EXPECT_EQ(nodes[2].node.health, Health::loading);
  EXPECT_EQ(nodes[2].node.offset, 77U);
  EXPECT_EQ(nodes[3].node.endpoint, std::nullopt) << "T03";
  EXPECT_EQ(parse_shards(reply, answerer, true)[1].node.endpoint, at(8001)) << "its TLS port";

  // RESP2 has arrays for maps.
  const auto flat = Value::array(
      {Value::array({text("slots"), Value::array({number(0), number(1)}), text("nodes"),
                     Value::array({Value::array({text("id"), text("a"), text("port"), number(7000),
                                                 text("endpoint"), text("h"), text("role"),
                                                 text("master")})})})});
  EXPECT_EQ(parse_shards(flat, answerer, false)[0].slots, (std::vector<SlotRange>{{0, 1}}));
  EXPECT_EQ(parse_shards(flat, answerer, true)[0].node.endpoint, std::nullopt) << "it has none";
}

TEST(Shards, ThatAreNoneAreRefused) {
  const auto refused = [](Value::Items shards) {
    return error_of([&] { return parse_shards(Value::array(std::move(shards)), answerer, false); });
  };
  const auto master = [](std::string_view id) {
    return node_of_shard(id, 7000, "master", text("h"));
  };
  EXPECT_THAT(refused({shard({number(0)}, {master("a")})}), HasSubstr("no end"));
  EXPECT_THAT(refused({shard({number(0), number(1)}, {})}), HasSubstr("no master"));
  EXPECT_THAT(refused({shard({number(0), number(1)}, {master("a")}),
                       shard({number(1), number(1)}, {master("b")})}),
              HasSubstr("two owners"));
  EXPECT_THAT(refused({shard({}, {master("a"), master("a")})}), HasSubstr("twice"));
  EXPECT_THAT(refused({number(1)}), HasSubstr("an array"));
  EXPECT_THAT(refused({Value::array({text("slots")})}), HasSubstr("without a value"));
  EXPECT_THAT(refused({resp_map({text("slots"), Value::array({})})}), HasSubstr("'nodes'"));
}

Value node_of_slots(Value host, std::int64_t port, std::string_view id) {
  return Value::array(
      {std::move(host), number(port), text(id), resp_map({text("hostname"), text("db.example")})});
}

TEST(Slots, AreRead) {
  const auto nodes = parse_slots(
      Value::array({Value::array({number(0), number(5), node_of_slots(text("10.0.0.1"), 7000, "a"),
                                  node_of_slots(Value{}, 7001, "b")}),
                    Value::array({number(7), number(7), node_of_slots(text("10.0.0.1"), 7000, "a"),
                                  node_of_slots(text("?"), 7002, "c")})}),
      answerer);
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].slots, (std::vector<SlotRange>{{0, 5}, {7, 7}}));
  EXPECT_EQ(nodes[0].node.hostname, "db.example");
  EXPECT_EQ(nodes[1].node.endpoint, (Endpoint{"10.0.0.9", 7001})) << "T03";
  EXPECT_EQ(nodes[1].node.master, "a");
  EXPECT_EQ(nodes[2].node.endpoint, std::nullopt) << "T03";

  const auto old = parse_slots(
      Value::array({Value::array({number(0), number(1), Value::array({text("h"), number(7)})})}),
      answerer);
  EXPECT_EQ(old[0].node.id, "h:7") << "before Redis 4 nodes have no id here";
}

TEST(Slots, ThatAreNoneAreRefused) {
  const auto refused = [](Value range) {
    return error_of([&] { return parse_slots(Value::array({std::move(range)}), answerer); });
  };
  EXPECT_NE(refused(Value::array({number(0), number(1)})), "");
  EXPECT_NE(refused(Value::array({number(0), number(1), Value::array({text("h")})})), "");
  EXPECT_NE(refused(Value::array({number(-1), number(1), node_of_slots(text("h"), 1, "a")})), "");
  EXPECT_NE(refused(Value::array({number(0), number(1), node_of_slots(text("h"), 70000, "a")})),
            "");
  EXPECT_NE(refused(text("x")), "");
}

TEST(View, TakesEpochsFromNodesAndEndpointsFromShards) {
  const auto shards = Value::array(
      {shard({number(0), number(16383)},
             {node_of_shard(id_of(1), 7001, "master", text("db1.example"), "loading")})});
  const auto view =
      view_of(std::vector{text(line(1, 7, " 0-16383") + line(2, 7, "", 1)), shards, info(9)},
              Form::shards, answerer, false);
  EXPECT_TRUE(view.is_ok);
  EXPECT_EQ(view.current_epoch, 9U);
  ASSERT_EQ(view.nodes.size(), 2U);
  EXPECT_EQ(view.nodes[0].node.epoch, 7U);
  EXPECT_EQ(view.nodes[0].node.endpoint, (Endpoint{"db1.example", 7001}));
  EXPECT_EQ(view.nodes[0].node.health, Health::loading);
  EXPECT_EQ(view.nodes[0].node.offset, 77U);
  EXPECT_EQ(view.nodes[1].node.endpoint, at(7002));
}

TEST(View, IsMadeOfWhatTheUserMayAsk) {
  const auto noperm = Value::error("NOPERM this user has no permissions to run 'cluster|nodes'");
  const auto shards = Value::array(
      {shard({number(0), number(1)}, {node_of_shard("a", 7001, "master", text("h"))})});
  EXPECT_EQ(
      view_of(std::vector{noperm, shards, info(1)}, Form::shards, answerer, false).nodes.size(),
      1U);
  EXPECT_EQ(view_of(std::vector{text(line(1, 1)), noperm, info(1)}, Form::shards, answerer, false)
                .nodes.size(),
            1U);
  EXPECT_THAT(error_of([&] {
                return view_of(std::vector{noperm, noperm, info(1)}, Form::shards, answerer, false);
              }),
              HasSubstr("NOPERM"));
  EXPECT_THAT(error_of([&] {
                return view_of(std::vector{text(line(1, 1)), shards, noperm}, Form::shards,
                               answerer, false);
              }),
              HasSubstr("CLUSTER INFO"));
}

TEST(View, OfALiarIsRefused) {
  EXPECT_THAT(error_of([] { return view(line(1, 8, " 0"), 7); }),
              HasSubstr("the config epoch 8, but its cluster is at 7"));
  EXPECT_THAT(error_of([] {
                return view_of(std::vector{text(line(1, 1)), Value::array({number(3)}), info(9)},
                               Form::shards, answerer, false);
              }),
              HasSubstr("CLUSTER SHARDS"))
      << "the whole, not half of it";
  EXPECT_NE(error_of([] {
              return view_of(std::vector{text(line(1, 1))}, Form::shards, answerer, false);
            }),
            "");
  EXPECT_FALSE(view(line(1, 1), 9, "fail").is_ok);
}

TEST(View, TellsAServerWithoutShards) {
  EXPECT_TRUE(lacks_shards(answer(line(1, 1))));
  EXPECT_FALSE(lacks_shards(std::vector{text(""), Value::error("NOPERM no"), info(1)}));
  EXPECT_FALSE(lacks_shards(std::vector{text("")}));
}

}  // namespace
}  // namespace sluice::topology::test
