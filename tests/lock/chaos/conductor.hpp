/// Starts a redis-server with a replica and processes that use locks, does to them what happens to
/// servers and processes, and checks what the processes write down.
///
/// A QuorumLock has three servers of its own, of which one is troubled at a time.
///
/// Workers reach the server by two lines. A promotion turns one of them a while before the other,
/// so that the old server goes on beside the new one.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>

#include "lock/chaos/findings.hpp"
#include "support/fault_proxy.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::chaos {

struct ChaosOptions {
  std::chrono::seconds time{600};
  std::uint64_t seed = 0;
  int workers = 8;
  int threads = 4;
  bool only_safety = false;  ///< nothing that depends on how fast the machine is
  std::string trouble{};     ///< this kind alone; empty: all
  bool careless = false;     ///< durable locks demand no replica: this has to be found
  bool keep = false;         ///< the journals, also where nothing was found
};

class Conductor {
 public:
  explicit Conductor(ChaosOptions options);

  /// Plays, and prints what happens. The exit code.
  int run();

 private:
  struct Worker {
    int slot;
    unsigned life = 0;
    std::string who{};  ///< "3.1": the second process in the third place
    std::optional<test::Process> process{};
    std::uint64_t trouble = 0;  ///< != 0: it stands still; its number
  };
  struct Deed {
    int weight;
    bool at_server;  ///< one at a time
    const char* name;
    void (Conductor::*play)();
  };
  static const std::array<Deed, 15> deeds;

  std::uint64_t up_to(std::uint64_t most);
  Stamp between(std::chrono::milliseconds least, std::chrono::milliseconds most);
  void later(Stamp delay, std::function<void()> what);
  std::size_t begin(Trouble::Kind kind, std::string text, const std::string& who = {});
  void end(std::size_t trouble);

  test::RedisServer& master() { return servers_[master_]; }
  test::RedisServer& replica() { return servers_[1 - master_]; }
  static Value tell(const test::RedisServer& server, std::initializer_list<std::string_view> words);
  bool is_replicated();
  void set_up();
  void set_permits();
  void follow();
  void server_is_well();
  void await_replica(int patience);

  void start(Worker& worker);
  Worker* any_worker();
  void stop(Worker& worker, Stamp time);
  void see_to_workers();
  void stop_briefly();
  void stop_beyond_the_lease();
  void stop_several();
  void kill_worker();
  void stop_server();
  void restart_server();
  void restart_from_snapshot();
  void promote();
  void use_up_memory();
  void empty_server();
  void stop_node();
  void restart_node();
  void kill_clients();
  void lose_replies();
  void save();

  void play_one();
  void run_agenda();
  void settle();
  void end_workers();
  void look_at_server();
  void read_journals();
  void look(bool all);
  void tell_progress();
  int report();
  void find(const std::string& name, const std::string& text);
  std::vector<std::string> left_on_server();

  const ChaosOptions options_;
  std::mt19937_64 dice_;
  test::TempDir folder_;
  std::array<test::RedisServer, 2> servers_;
  std::size_t master_ = 0;
  std::array<test::FaultProxy, 2> lines_{test::FaultProxy{servers_[0].port()},
                                         test::FaultProxy{servers_[0].port()}};
  std::array<test::RedisServer, 3> nodes_;  // of the QuorumLock
  std::vector<Worker> workers_;
  std::vector<std::pair<std::string, unsigned>> journals_;
  std::multimap<Stamp, std::function<void()>> agenda_;
  bool server_is_busy_ = false;
  bool node_is_busy_ = false;  // one of them: the others are a majority
  Sections sections_;
  std::vector<Trouble> troubles_;
  std::map<std::string, std::size_t> played_;
  std::vector<Finding> findings_;
  std::set<std::string> known_;  // findings by their text
  Stamp began_{};
  Stamp looked_{};
};

}  // namespace sluice::chaos
