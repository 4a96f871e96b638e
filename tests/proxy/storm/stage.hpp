/// Fresh servers, a fresh proxy in front of them, canaries, and hostile clients who play rounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/storm/canary.hpp"
#include "proxy/storm/front.hpp"
#include "proxy/storm/round.hpp"
#include "proxy/storm/tongue.hpp"
#include "proxy/storm/wire.hpp"

namespace sluice::test {

/// What must not be.
struct Finding {
  enum class Kind : std::uint8_t { canary, sentinel, count, executed, forbidden };
  Kind kind;
  std::string text;
};

struct StageOptions {
  std::size_t canaries = 4;
  std::size_t clients = 6;
  CanaryOptions canary;
  bool as_program = false;
  std::string program;                ///< its path; empty: that of this tree
  std::vector<std::string> settings;  ///< more lines of the pool
};

class Stage {
 public:
  Stage(Tongue& tongue, StageOptions options);

  /// Nothing: all was as it should be.
  std::optional<Finding> play(const Round& round);
  /// Asks the servers what they were not to execute.
  std::optional<Finding> inspect();

  Front& proxy() noexcept { return proxy_; }
  /// Lets the canaries sing alone.
  std::optional<Finding> idle(std::chrono::milliseconds time);
  std::uint64_t replies() const;
  std::uint64_t losses() const;
  LatencyCounts latencies() const;

 private:
  enum class Phase : std::uint8_t { sends, waits, done };
  struct Client {
    std::unique_ptr<Wire> wire;
    Phase phase = Phase::done;
    std::string bytes;  // not yet sent
    std::vector<std::size_t> writes;
    bool vanishes = false;
    Understanding understanding;
    Question sentinel;
    std::chrono::steady_clock::time_point sent;
  };

  void prepare();
  void begin(std::size_t number, const Batch& batch);
  void go_on(Client& client);
  void send_more(Client& client);
  std::optional<Finding> look_at_all();
  std::optional<Finding> wait_for_clients();
  std::optional<Finding> wait_for_canaries();
  std::optional<Finding> check_replies(std::size_t number);
  std::optional<Finding> check_executed();
  void turn(int milliseconds);

  Tongue& tongue_;
  StageOptions options_;
  Front proxy_;
  std::deque<Canary> canaries_;
  std::vector<Client> clients_;
  std::uint64_t token_ = 0;
  // What servers may still execute. Nothing is ever forgotten, as they may do late what clients
  // have asked for that vanished.
  std::unordered_map<std::string, std::size_t> meant_;
};

}  // namespace sluice::test
