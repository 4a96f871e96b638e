#include <fmt/format.h>

#include <array>
#include <memory>
#include <thread>

#include "lock/chaos/deployment.hpp"
#include "sluice/open.hpp"
#include "support/fault_proxy.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using Kind = Trouble::Kind;

class ReplicatedServer final : public Deployment {
 public:
  explicit ReplicatedServer(Stage& stage) : stage_(stage) {}

  void set_up() override {
    follow();
    set_permits(*open_calmly());
    const Stamp patience = stamp() + 20s;
    while (!is_replicated() && stamp() < patience) std::this_thread::sleep_for(10ms);
    tell(master().port(), {"SAVE"});
  }

  std::vector<Deed> deeds() override {
    return {
        {8, false, "cut lines", [this] { lose_replies(); }},
        {6, true, "killed clients", [this] { kill_clients(); }},
        {8, true, "saves", [this] { save(); }},
        {8, true, "stops of the server", [this] { stop_server(); }},
        {5, true, "slow scripts", [this] { run_slow_script(); }},
        {3, true, "restarts with all data", [this] { restart_server(); }},
        {5, true, "restarts from an older file", [this] { restart_from_snapshot(); }},
        {6, true, "promotions", [this] { promote(); }},
        {4, true, "times without memory", [this] { use_up_memory(); }},
        {4, true, "times without WAIT", [this] { refuse_wait(); }},
        {3, true, "FLUSHALL", [this] { empty_server(); }},
    };
  }

  std::string url(std::size_t place) const override {
    return lines_.at(place % lines_.size()).url();
  }
  std::unique_ptr<Store> open_calmly() const override { return open(servers_.at(master_).url()); }
  std::vector<std::uint16_t> masters() const override { return {servers_.at(master_).port()}; }

 private:
  test::RedisServer& master() { return servers_.at(master_); }
  test::RedisServer& replica() { return servers_.at(1 - master_); }

  bool is_replicated() {
    return tell(replica().port(), {"INFO", "replication"})
               .as_text()
               .find("master_link_status:up") != std::string::npos;
  }

  void follow() {
    tell(replica().port(), {"REPLICAOF", "127.0.0.1", std::to_string(master().port())});
  }

  /// `patience`: so many looks, 50 ms apart. Sometimes the next trouble does not wait for it.
  void await_replica(int patience) {
    if (patience == 0 || is_replicated()) return stage_.servers_are_well();
    stage_.later(50ms, [this, patience] { await_replica(patience - 1); });
  }

  void stop_server() {
    master().stop();
    const auto trouble = stage_.begin(Kind::server, "the server is stopped");
    stage_.later(stage_.between(0ms, 6000ms), [this, trouble] {
      master().cont();
      stage_.end(trouble);
      stage_.servers_are_well();
    });
  }

  /// Of a stranger. After five seconds the server says BUSY to all others.
  void run_slow_script() {
    const Stamp time = stage_.between(50ms, 6000ms);
    const auto client = std::make_shared<test::PlainClient>(master().port());
    const auto trouble = stage_.begin(Kind::server, "a script lasts long");
    client->send(fmt::format(
        "EVAL \"local till = os.clock() + ARGV[1] repeat until os.clock() >= till\" 0 {:.3f}\r\n",
        static_cast<double>(time.count()) / 1e9));
    stage_.later(time, [this, client, trouble] {
      client->read();
      stage_.end(trouble);
      stage_.servers_are_well();
    });
  }

  void restart_server() {
    const auto trouble = stage_.begin(Kind::server, "the server is restarted with its data");
    master().restart(true);
    stage_.end(trouble);
    await_replica(static_cast<int>(stage_.up_to(100)));
  }

  void restart_from_snapshot() {
    const auto trouble = stage_.begin(Kind::snapshot, "the server is killed, its file is older");
    master().kill();
    stage_.later(stage_.between(0ms, 1000ms), [this, trouble] {
      master().start();
      set_permits(*open_calmly());  // a replica's file may be of the time before there were any
      stage_.end(trouble);
      await_replica(static_cast<int>(stage_.up_to(100)));
    });
  }

  void promote() {
    if (!is_replicated()) return stage_.servers_are_well();
    const auto trouble = stage_.begin(Kind::promotion, "the replica is promoted");
    tell(replica().port(), {"REPLICAOF", "NO", "ONE"});
    master_ = 1 - master_;
    const std::size_t first = stage_.up_to(1);
    lines_[first].turn_to(master().port());
    stage_.later(stage_.between(0ms, 1500ms), [this, trouble, last = 1 - first] {
      lines_[last].turn_to(master().port());
      replica().kill();
      set_permits(*open_calmly());
      stage_.end(trouble);
      replica().restart(false);
      follow();
      await_replica(200);
    });
  }

  void use_up_memory() {
    const auto trouble = stage_.begin(Kind::server, "the server has no memory");
    tell(master().port(), {"CONFIG", "SET", "maxmemory", "1"});
    stage_.later(stage_.between(200ms, 3000ms), [this, trouble] {
      tell(master().port(), {"CONFIG", "SET", "maxmemory", "0"});
      stage_.end(trouble);
      stage_.servers_are_well();
    });
  }

  void refuse_wait() {
    const auto trouble = stage_.begin(Kind::server, "the server refuses WAIT");
    allow_wait(master().port(), false);
    stage_.later(stage_.between(200ms, 3000ms), [this, trouble] {
      allow_wait(master().port(), true);
      stage_.end(trouble);
      stage_.servers_are_well();
    });
  }

  void empty_server() {
    const auto trouble = stage_.begin(Kind::snapshot, "the server is emptied");
    tell(master().port(), {"FLUSHALL"});
    set_permits(*open_calmly());
    stage_.end(trouble);
    await_replica(20);
  }

  void kill_clients() {
    constexpr std::array<std::string_view, 4> types{"normal", "pubsub", "replica", "normal"};
    const auto trouble = stage_.begin(Kind::server, "connections are killed by the server");
    tell(master().port(), {"CLIENT", "KILL", "TYPE", types.at(stage_.up_to(3))});
    stage_.end(trouble);
    await_replica(20);
  }

  void save() {
    tell(master().port(), {"SAVE"});
    stage_.servers_are_well();
  }

  void lose_replies() {
    test::FaultProxy& line = lines_[stage_.up_to(1)];
    const auto trouble = stage_.begin(Kind::server, "replies are lost with their lines");
    line.on(test::any_reply(), {.fault = test::LineFault::cut,
                                .bytes = stage_.up_to(3),
                                .skip = stage_.up_to(200),
                                .times = 1 + stage_.up_to(3)});
    stage_.later(stage_.between(100ms, 1000ms), [this, &line, trouble] {
      line.forget_rules();
      stage_.end(trouble);
    });
  }

  Stage& stage_;
  std::array<test::RedisServer, 2> servers_;
  std::size_t master_ = 0;
  std::array<test::FaultProxy, 2> lines_{test::FaultProxy{servers_[0].port()},
                                         test::FaultProxy{servers_[0].port()}};
};

}  // namespace

std::unique_ptr<Deployment> make_replicated_server(Stage& stage) {
  return std::make_unique<ReplicatedServer>(stage);
}

}  // namespace sluice::chaos
