/// Starts servers and processes that use all primitives on them, does to them what happens to
/// servers and processes, and checks what the processes write down.
///
/// A QuorumLock has three servers of its own, of which one is troubled at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "lock/chaos/deployment.hpp"
#include "lock/chaos/findings.hpp"
#include "lock/chaos/shop.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::chaos {

struct ChaosOptions {
  std::chrono::seconds time{600};
  std::uint64_t seed = 0;
  int workers = 8;
  int threads = 4;
  bool cluster = false;      ///< not one server with a replica
  bool only_safety = false;  ///< nothing that depends on how fast the machine is
  std::string trouble{};     ///< this kind alone; empty: all
  bool careless = false;     ///< durable locks demand no replica: this has to be found
  bool keep = false;         ///< the journals, also where nothing was found
};

class Conductor final : private Stage {
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

  std::uint64_t up_to(std::uint64_t most) override;
  void later(Stamp delay, std::function<void()> what) override;
  std::size_t begin(Trouble::Kind kind, std::string text) override;
  std::size_t begin(Trouble::Kind kind, std::string text, const std::string& who);
  void end(std::size_t trouble) override;
  void servers_are_well() override { servers_are_busy_ = false; }

  void set_up();
  void start(Worker& worker);
  Worker* any_worker();
  void stop(Worker& worker, Stamp time);
  void see_to_workers();
  void stop_briefly();
  void stop_beyond_the_lease();
  void stop_several();
  void kill_worker();
  void stop_node();
  void restart_node();

  void play_one();
  void run_agenda();
  void settle();
  void end_workers();
  void look_at_servers();
  void read_journals();
  void look(bool all);
  void tell_progress();
  int report();
  void find(const std::string& name, const std::string& text);
  void take(const Finding& finding);
  std::vector<std::string> left_on_servers();

  const ChaosOptions options_;
  std::mt19937_64 dice_;
  test::TempDir folder_;
  const bool has_network_;
  const std::unique_ptr<Deployment> deployment_;
  Shop shop_;
  std::vector<Deployment::Deed> deeds_;
  std::array<test::RedisServer, 3> nodes_;  // of the QuorumLock
  std::vector<Worker> workers_;
  std::vector<std::pair<std::string, unsigned>> journals_;
  std::multimap<Stamp, std::function<void()>> agenda_;
  bool servers_are_busy_ = false;
  bool node_is_busy_ = false;  // one of them: the others are a majority
  Sections sections_;
  std::vector<Trouble> troubles_;
  std::map<std::string, std::size_t> played_;
  std::vector<Finding> findings_;
  std::set<std::string> known_;  // findings by their text
  std::map<std::string, std::size_t> explained_;
  Stamp began_{};
  Stamp looked_{};
};

}  // namespace sluice::chaos
