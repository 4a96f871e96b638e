/// The program before Sentinels and before a cluster.
#include "cli/program.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "support/certificates.hpp"
#include "support/cluster_rig.hpp"
#include "support/free_port.hpp"
#include "support/sentinel_rig.hpp"

namespace sluice {
namespace {

using test::Ran;

class ByItself : public test::Program {
 protected:
  static test::SentinelRig& sentinels() {
    static test::SentinelRig rig;
    return rig;
  }
  static test::ClusterRig& cluster() {
    static test::ClusterRig rig;
    return rig;
  }
};

TEST_F(ByItself, TheDoctorAsksEachSentinel) {
  const Ran ran = run({"doctor", sentinels().url({sentinels().sentinel(0).port()})});
  for (const auto* const text : {"3 of 3 Sentinels answer", "2, and enough can be reached",
                                 "a shorter lease ends before", "danger   persistence"})
    EXPECT_TRUE(ran.says(text)) << text << '\n' << ran.output;
  EXPECT_EQ(ran.status, 1) << "it keeps nothing on disk";
  const Ran unknown = run({"doctor", sentinels().url() + "er"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_TRUE(unknown.says("No such master")) << unknown.output;
}

TEST_F(ByItself, ASentinelThatIsAwayIsNamed) {
  sentinels().sentinel(2).process().stop();
  const Ran ran = run({"doctor", sentinels().url() + "?connect_timeout=1s"});
  sentinels().sentinel(2).process().cont();
  EXPECT_TRUE(ran.says("2 of 3 Sentinels answer; not: 127.0.0.1:" +
                       std::to_string(sentinels().sentinel(2).port())))
      << ran.output;
}

TEST_F(ByItself, ExplainNamesTheMasterAndWhoSaysSo) {
  const Ran ran = run({"--json", "--store", sentinels().url(), "explain", "stock"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.json().at("master"), "127.0.0.1:" + std::to_string(sentinels().server(0).port()));
  EXPECT_NE(ran.json().at("why").get<std::string>().find("3 of 3"), std::string::npos);
}

TEST_F(ByItself, TheDoctorAsksEachNodeOfACluster) {
  const Ran ran = run({"doctor", cluster().url()});
  for (const auto* const text :
       {"6 of 6 nodes answer", "the same owners of slots", "all slots, by 3 masters",
        "cluster-node-timeout 1000", "3 of 3 masters are on 127.0.0.1", "a script wrote a key"})
    EXPECT_TRUE(ran.says(text)) << text << '\n' << ran.output;
}

TEST_F(ByItself, ExplainTellsTheSlotOfAKeyAndItsMove) {
  auto& rig = cluster();
  const std::string key = "{x}:stock";
  const auto from = rig.master_of(key);
  const auto ran = run({"--json", "--store", rig.url(), "explain", key}).json();
  EXPECT_EQ(ran.at("slot"), "16287, CRC16 of 'x', what stands in its braces");
  EXPECT_NE(ran.at("master").get<std::string>().find(std::to_string(rig.node(from).port())),
            std::string::npos);
  EXPECT_NE(ran.at("why").get<std::string>().find("6 of 6"), std::string::npos);
  const auto to = rig.master_of("a") == from ? rig.master_of("b") : rig.master_of("a");
  rig.begin_move(16287, from, to);
  const Ran moving = run({"--store", rig.url(), "explain", key});
  EXPECT_TRUE(moving.says("is moving to node " + rig.id_of(to))) << moving.output;
  rig.end_move(16287, from, to);
}

TEST_F(ByItself, LocksOfAClusterAreListedByAllItsNodes) {
  const auto store = open(cluster().url());
  Mutex a{*store, "lock-a"};
  Mutex b{*store, "lock-b"};
  const auto first = a.acquire().get();
  const auto second = b.acquire().get();
  const Ran ran = run({"--store", cluster().url(), "locks"});
  EXPECT_TRUE(ran.says("lock-a")) << ran.output;
  EXPECT_TRUE(ran.says("lock-b")) << ran.output;
}

TEST_F(ByItself, TheDoctorTellsWhenACertificateEnds) {
  const test::Certificates files;
  const auto port = test::free_port();
  const test::RedisServer server{files.redis(port, "no")};
  const Ran ran =
      run({"doctor", "rediss://127.0.0.1:" + std::to_string(port) + "?tls_ca=" + files["ca.pem"]});
  EXPECT_TRUE(ran.says("certificate  that of 127.0.0.1:" + std::to_string(port) + " ends on"))
      << ran.output;
}

}  // namespace
}  // namespace sluice
