/// The ways in which a proxy runs for the table: inside the test, as a program that is replaced, as
/// one whose keys move, and before a master with a replica.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/hash_slot.hpp"
#include "proxy/config/read.hpp"
#include "proxy/flow/replica_reads.hpp"
#include "proxy/move/move_rig.hpp"
#include "proxy/session/sessions.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/cluster_rig.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_rig.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

/// Three servers of rings, and two of a mirror, for all stages.
inline RedisServer& server(std::size_t number) {
  static RedisServer all[5];
  return all[number];
}

/// Empty but for the keys that a scan must see.
inline void fill(PlainClient client, std::uint16_t port) {
  std::string bytes = request("FLUSHALL") + request("SCRIPT FLUSH");
  for (int i = 0; i < Session::fill; ++i)
    bytes += request(fmt::format("SET fill:{}:{} x", port, i));
  client.send(bytes);
  for (int i = 0; i < Session::fill + 2; ++i) ASSERT_FALSE(client.read().is_error());
}

/// A pool of some of the servers, in this order.
struct TablePool {
  std::vector<std::size_t> of = {0, 1};
  std::vector<std::string> settings = {};
  std::string app = app_user;
  bool has_mirror = false;
};

inline std::vector<std::string> lines_of(const TablePool& pool) {
  auto lines = with_app(pool.settings, pool.app);
  lines.insert(lines.begin(), "redis: true");
  if (pool.has_mirror) lines.emplace_back("mirror: {pool: second_pool}");
  lines.emplace_back("servers:");
  for (const auto number : pool.of)
    lines.push_back(fmt::format(" - 127.0.0.1:{}:1 {}", server(number).port(),
                                static_cast<char>('a' + number)));
  return lines;
}

class StageInside : public Stage {
 public:
  explicit StageInside(const TablePool& pool, Clock& clock = system_clock())
      : proxy((fill_all(), both_pools(pool)), {}, clock) {}
  std::uint16_t port() const override { return proxy.port(); }
  proxy::PoolSettings settings() const override {
    return const_cast<ProxyUnderTest&>(proxy).proxy().config().pools.front();
  }
  std::vector<std::uint16_t> servers() const override {
    std::vector<std::uint16_t> ports;
    for (std::size_t i = 0; i < 3; ++i)
      if (i != out_) ports.push_back(server(i).port());
    return ports;
  }
  std::uint16_t home_of(std::string_view key) const override {
    const auto now = settings();
    if (!out_ || now.on_failure == proxy::OnFailure::fail) return Stage::home_of(key);
    std::vector<std::uint32_t> live;
    for (std::uint32_t i = 0; i < now.servers.size(); ++i)
      if (now.servers[i].endpoint.port != server(*out_).port()) live.push_back(i);
    return now.servers[proxy::make_homes(now, live).of(key)].endpoint.port;
  }
  void reload(const TablePool& pool) { proxy.reload(both_pools(pool)); }
  /// The first server is out, and the proxy has noticed.
  virtual void lose_first() {
    server(0).kill();
    await_ejection(0);
  }
  void start_first() {
    server(0).start();
    out_.reset();
    EXPECT_TRUE(comes_true([&] { return totals(proxy, 0).server_ejected == 0; }));
    fill(direct(server(0).port()), server(0).port());
  }

 protected:
  void await_ejection(std::size_t number) {
    out_ = number;
    auto looker = client("root r");
    const auto key = Stage::key_at(number, "look");
    EXPECT_TRUE(comes_true([&] {
      static_cast<void>(ask(looker, "GET " + key));
      return totals(proxy).server_ejects > 0;
    }));
  }

 private:
  static void fill_all() {
    for (std::size_t i = 0; i < 5; ++i) {
      if (server(i).pid() < 0) server(i).start();
      fill(PlainClient{server(i).port()}, server(i).port());
    }
  }
  PoolLines both_pools(const TablePool& pool) const {
    PoolLines lines{lines_of(pool)};
    lines.others = {"second_pool:", "  listen: " + (directory_.path() / "second").string(),
                    "  redis: true", "  servers:"};
    for (const std::size_t i : {3, 4})
      lines.others.push_back(fmt::format("   - 127.0.0.1:{}:1 {}", server(i).port(), i));
    return lines;
  }

  TempDir directory_;
  std::optional<std::size_t> out_;

 public:
  ProxyUnderTest proxy;
};

/// A server without a proxy, which the last of the mirror is: what it says is right.
class StageOfServer final : public Stage {
 public:
  explicit StageOfServer(proxy::PoolSettings like) : settings_(std::move(like)) {
    settings_.servers.resize(1);
    settings_.servers[0].endpoint.port = port();
    fill(PlainClient{port()}, port());
  }
  std::uint16_t port() const override { return server(4).port(); }
  proxy::PoolSettings settings() const override { return settings_; }
  std::vector<std::uint16_t> servers() const override { return {port()}; }

 private:
  proxy::PoolSettings settings_;
};

/// Time passes only while an answer is awaited: the first server hangs.
class StageOfHanging final : public StageInside {
 public:
  explicit StageOfHanging(const TablePool& pool) : StageOfHanging(pool, nullptr) {}
  ~StageOfHanging() override { server(0).cont(); }
  std::string answer(PlainClient& client) override {
    return said([&] {
      auto value = read_as_time_passes(client, proxy);
      if (!value) throw std::system_error{std::make_error_code(std::errc::timed_out)};
      return *value;
    });
  }
  void lose_first() override {
    server(0).stop();
    await_ejection(0);
  }

 private:
  StageOfHanging(const TablePool& pool, std::unique_ptr<VirtualClock> /*its*/)
      : StageInside(pool, clock()) {}
  static VirtualClock& clock() {
    static VirtualClock clock;
    return clock;
  }
};

/// The program, which a new one replaces.
class StageOfUpgrade final : public Stage {
 public:
  StageOfUpgrade()
      : program_(lines_of({}), {.process = {"drain_timeout: 600000"}, .arguments = {}}) {
    for (std::size_t i = 0; i < 2; ++i) fill(PlainClient{server(i).port()}, server(i).port());
    settings_ = proxy::config::load(program_.config()).pools.front();
  }
  std::uint16_t port() const override { return program_.port(); }
  proxy::PoolSettings settings() const override { return settings_; }
  std::vector<std::uint16_t> servers() const override {
    return {server(0).port(), server(1).port()};
  }
  void upgrade() {
    const auto before = program_.serving_pid();
    const auto reply = program_.ask({"UPGRADE"});
    ASSERT_FALSE(reply.is_error()) << reply.as_text() << program_.log();
    ASSERT_NE(program_.serving_pid(), before);
  }
  /// With whatever was written to its file.
  void reload(const TablePool& pool) {
    program_.write(lines_of(pool));
    settings_ = proxy::config::load(program_.config()).pools.front();
    ASSERT_FALSE(program_.ask({"RELOAD"}).is_error());
    EXPECT_TRUE(comes_true([&] { return program_.log().contains("is followed"); }))
        << program_.log();
  }

 private:
  ProxyProgram program_;
  proxy::PoolSettings settings_;
};

/// Keys go to a third server.
class StageOfMove final : public Stage {
 public:
  StageOfMove() : rig_(1, {}, with_app()) {
    for (std::size_t i = 0; i < MoveRig::servers; ++i) fill(rig_.direct(i), rig_.server(i).port());
  }
  std::uint16_t port() const override { return rig_.port(0); }
  proxy::PoolSettings settings() const override {
    return proxy::config::load(moves_ ? rig_.new_file() : rig_.old_file()).pools.front();
  }
  std::vector<std::uint16_t> servers() const override {
    std::vector<std::uint16_t> ports;
    for (std::size_t i = 0; i < MoveRig::servers - (is_down_ ? 1 : 0); ++i)
      ports.push_back(const_cast<MoveRig&>(rig_).server(i).port());
    return ports;
  }
  PlainClient direct(std::uint16_t server) const override {
    PlainClient client{server};
    static_cast<void>(client.command({"AUTH", "tester", "any"}));
    return client;
  }
  std::vector<std::uint16_t> other_homes() const override { return servers(); }
  std::string key_at(std::size_t home, std::string_view prefix) const override {
    for (int i = 0;; ++i)
      if (auto key = fmt::format("{}{}", prefix, i);
          (rig_.home(key, false) == rig_.home(key, true)) == (home != 0))
        return key;
  }
  void move(bool new_home_goes_down) {
    mover_.emplace(rig_.start_mover());
    ASSERT_TRUE(rig_.comes_to_tell(new_home_goes_down ? "moving" : "all keys have moved, but"))
        << rig_.told();
    moves_ = true;
    is_down_ = new_home_goes_down;
    if (is_down_) rig_.server(2).kill();
  }
  void finish() {
    rig_.place_files(true);
    ASSERT_EQ(mover_->wait(), 0) << rig_.told();
  }

 private:
  MoveRig rig_;
  bool moves_ = false, is_down_ = false;
  std::optional<Process> mover_;
};

/// A master whose replica is read from, and hangs or lags.
class StageOfReplica final : public Stage {
 public:
  explicit StageOfReplica(bool reads_own_writes)
      : rig_({.sentinels = 1}), proxy_(pool(reads_own_writes)) {
    fill(PlainClient{master()}, master());
    PlainClient to_master{master()};
    to_master.command({"SET", "seen", "x"});
    auto looker = client("root r");
    EXPECT_TRUE(reads_at(rig_.server(1), looker, "seen", "x"));
  }
  ~StageOfReplica() override { const_cast<SentinelRig&>(rig_).server(1).cont(); }
  std::uint16_t port() const override { return proxy_.port(); }
  proxy::PoolSettings settings() const override {
    return const_cast<ProxyUnderTest&>(proxy_).proxy().config().pools.front();
  }
  std::vector<std::uint16_t> servers() const override { return {master()}; }
  std::vector<std::uint16_t> ring() const override { return servers(); }
  std::uint16_t home_of(std::string_view /*key*/) const override { return master(); }
  void hang() { rig_.server(1).stop(); }
  /// It answers, and hears nothing more of its master.
  void lag() {
    PlainClient to_master{master()};
    EXPECT_EQ(test::ask(to_master, "ACL SETUSER default -psync -replconf"), "+OK");
    EXPECT_EQ(test::ask(to_master, "CLIENT KILL TYPE replica"), ":1");
  }

 private:
  std::uint16_t master() const { return const_cast<SentinelRig&>(rig_).server(0).port(); }
  PoolLines pool(bool reads_own_writes) {
    auto lines = with_app({"redis: true", "timeout: 30000", "read_from: replica",
                           fmt::format("sentinels: [127.0.0.1:{}]", rig_.sentinel(0).port()),
                           fmt::format("read_your_writes: {}", reads_own_writes)});
    lines.insert(lines.end(), {"servers:", " - nowhere.example:1:1 m"});
    return PoolLines{lines};
  }

  SentinelRig rig_;
  ProxyUnderTest proxy_;
};

/// A cluster of three masters. The first home is a slot that moves.
class StageOfCluster final : public Stage {
 public:
  explicit StageOfCluster(const TablePool& pool = {}) : proxy_((mend(), lines(pool))) {}
  std::uint16_t port() const override { return proxy_.port(); }
  proxy::PoolSettings settings() const override {
    return const_cast<ProxyUnderTest&>(proxy_).proxy().config().pools.front();
  }
  std::vector<std::uint16_t> servers() const override {
    std::set<std::uint16_t> ports;
    for (const auto* const tag : tags) ports.insert(home_of(tag));
    return {ports.begin(), ports.end()};
  }
  std::vector<std::uint16_t> ring() const override { return servers(); }
  std::vector<int> databases() const override { return {0}; }
  std::uint16_t home_of(std::string_view key) const override {
    return rig().node(rig().master_of(std::string{key})).port();
  }
  std::string key_at(std::size_t home, std::string_view prefix) const override {
    return fmt::format("{}{}", prefix, tags[home]);
  }
  std::string fill_prefix(std::uint16_t server) const override {
    for (int tag = 0;; ++tag)  // of a slot that stays
      if (home_of(fmt::format("{{{}}}", tag)) == server) return fmt::format("fill:{{{}}}:", tag);
  }
  void reload(const TablePool& pool, std::size_t named) { proxy_.reload(lines(pool, named)); }
  void move_slot() {
    const int slot = hash_slot(tags[0]);
    const auto from = rig().master_of_slot(slot);
    rig().move_slot(slot, from,
                    rig().master_of(from == rig().master_of(tags[1]) ? tags[2] : tags[1]));
  }
  void fail_over() { rig().fail_over(rig().master_of(tags[0])); }

 private:
  /// Slots of three masters, as the cluster was made.
  static constexpr const char* tags[] = {"{a}", "{b}", "{c}"};

  static ClusterRig& rig() {
    static ClusterRig rig;
    return rig;
  }
  static PoolLines lines(const TablePool& pool, std::size_t named = 0) {
    auto lines = with_app(pool.settings, pool.app);
    lines.insert(lines.begin(), {"redis: true", "timeout: 30000",
                                 fmt::format("cluster: [127.0.0.1:{}]", rig().node(named).port())});
    return PoolLines{lines};
  }
  /// Each tag has a master of its own, which has nothing but the keys of scans.
  void mend() {
    rig().heal();
    for (const auto* const tag : {tags[1], tags[2]})
      if (rig().master_of(tag) == rig().master_of(tags[0])) move_slot();
    for (const auto server : servers()) {
      auto client = direct(server);
      EXPECT_EQ(test::ask(client, "FLUSHALL"), "+OK");
      const auto prefix = fill_prefix(server);
      for (int i = 0; i < Session::fill; ++i)
        EXPECT_EQ(test::ask(client, fmt::format("SET {}{} x", prefix, i)), "+OK");
    }
  }

  ProxyUnderTest proxy_;
};

}  // namespace sluice::test
