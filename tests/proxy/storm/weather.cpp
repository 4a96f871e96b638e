#include "proxy/storm/weather.hpp"

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "proxy/storm/mutation.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

void Chaos::act(Stage& stage, Random& random) {
  auto& program = *stage.proxy().program();
  switch (up_to(random, 60)) {
    case 0:
    case 1: reload(program, random); break;
    case 2: upgrade(program); break;
    case 3: kill(random); break;
    case 4:
    case 5:
    case 6: calm(); break;
    case 7: freeze(random); break;
    default: break;
  }
}

void Chaos::reload(ProxyProgram& program, Random& random) {
  static constexpr std::string_view settings[] = {"hash: murmur",
                                                  "hash: fnv1a_64",
                                                  "distribution: modula",
                                                  "timeout: 3000",
                                                  "timeout: 4000",
                                                  "server_connections: 2",
                                                  "retry_reads: true",
                                                  "preconnect: true",
                                                  "client_pending_limit: 100",
                                                  "on_failure: fail",
                                                  "backlog: 100",
                                                  "auto_eject_hosts: true",
                                                  "hash_tag: \"{}\"",
                                                  "tcpkeepalive: true",
                                                  "request_size_limit: 1mb",
                                                  "reply_size_limit: 1mb",
                                                  "client_output_limit: 1mb"};
  auto pool = tongue_.pool();
  pool.lines.insert(pool.lines.begin(), "server_retry_timeout: 100");
  pool.lines.insert(pool.lines.begin(), std::string{one_of(settings, random)});
  program.write(pool.lines);
  ::kill(program.serving_pid(), SIGUSR1);
  ++deeds_["reloads"];
}

void Chaos::upgrade(ProxyProgram& program) try {
  const auto reply = program.ask({"UPGRADE"});
  ++deeds_[reply.is_error() ? "refused upgrades" : "upgrades"];
} catch (const std::system_error&) {
  ++deeds_["refused upgrades"];
}

void Chaos::kill(Random& random) {
  if (dead_ >= 0) return;
  dead_ = static_cast<int>(up_to(random, Tongue::server_count - 1));
  tongue_.kill_server(static_cast<std::size_t>(dead_));
  ++deeds_["killed servers"];
}

void Chaos::calm() {
  if (dead_ < 0) return;
  tongue_.revive_server(static_cast<std::size_t>(dead_));
  dead_ = -1;
}

void Chaos::freeze(Random& random) {
  if (dead_ >= 0) return;
  const auto pid = tongue_.server_pid(up_to(random, Tongue::server_count - 1));
  ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds{up_to(random, 100)});
  ::kill(pid, SIGCONT);
  ++deeds_["frozen servers"];
}

std::string Chaos::told() const {
  std::string text;
  for (const auto& [what, times] : deeds_)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", times, what);
  return text;
}

void harass(std::uint16_t port, std::size_t clients, const std::vector<Batch>& batches,
            std::chrono::milliseconds pause) {
  using Clock = std::chrono::steady_clock;
  struct Pest {
    std::unique_ptr<Wire> wire;
    Clock::time_point next = Clock::now();
  };
  std::vector<Pest> pests(clients);
  std::size_t at = 0;
  for (;;) {
    std::vector<Wire*> wires;
    for (auto& pest : pests) {
      if (pest.wire) pest.wire->input().clear();
      if (Clock::now() >= pest.next) {
        const auto& batch = batches[at++ % batches.size()];
        if (batch.connects || !pest.wire || pest.wire->ended())
          pest.wire = std::make_unique<Wire>(port);
        pest.wire->queue(batch.bytes());
        pest.next = Clock::now() + pause;
      }
      wires.push_back(pest.wire.get());
    }
    Wire::turn(wires, 1);
  }
}

}  // namespace sluice::test
