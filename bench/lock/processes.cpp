/// Many processes on one lock: how fast it goes from one to another, and what that costs the
/// server.
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <charconv>
#include <list>
#include <new>
#include <thread>

#include "figures.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"
#include "support/blocking_peer.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"

namespace sluice::bench {
namespace {

/// What the processes of one measurement share.
struct Board {
  std::atomic<std::int64_t> released_at{0};
  std::atomic<std::uint64_t> releases{0};
  std::atomic<bool> over{false};
  std::atomic<std::size_t> samples{0};
  std::array<std::int64_t, 100'000> nanoseconds{};

  void note(std::int64_t ns) {
    const auto place = samples.fetch_add(1);
    if (place < nanoseconds.size()) nanoseconds[place] = ns;
  }
  /// The median, in microseconds.
  double p50() const {
    const auto many = std::min(samples.load(), nanoseconds.size());
    return median({nanoseconds.begin(), nanoseconds.begin() + static_cast<std::ptrdiff_t>(many)}) /
           1000;
  }
};

struct Unmap {
  void operator()(Board* board) const noexcept { ::munmap(board, sizeof(Board)); }
};
using SharedBoard = std::unique_ptr<Board, Unmap>;

SharedBoard make_board() {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  return SharedBoard{new (memory) Board};
}

/// Long enough for the other one to wait, as it does behind a critical section.
constexpr std::chrono::microseconds pace{300};

std::int64_t now_ns() { return system_clock().steady().time_since_epoch().count(); }

std::string url_of(int port) { return fmt::format("redis://127.0.0.1:{}", port); }

/// Enters and leaves until it is over, and notes how long the lock took to come from another.
int take_turns(int port, Board& board) {
  const auto store = open(url_of(port));
  Mutex mutex{*store, "bench:turns", {.hand_off = {.within_process = 1}}};
  while (!board.over) {
    auto held = mutex.try_acquire(std::chrono::seconds{5}).get();
    if (!held) break;
    if (const auto sent = board.released_at.exchange(0)) board.note(now_ns() - sent);
    std::this_thread::sleep_for(pace);
    board.released_at = now_ns();
    held->release().get();
    ++board.releases;
  }
  return 0;
}

double hand_over_p50(int port, std::chrono::milliseconds each) {
  const auto board = make_board();
  {
    std::list<test::Process> pair;
    for (int i = 0; i < 2; ++i) pair.emplace_back([&] { return take_turns(port, *board); });
    std::this_thread::sleep_for(each);
    board->over = true;
    for (auto& process : pair) process.wait();
  }
  return board->p50();
}

/// From one process's PUBLISH to the other's having read it.
double hop_p50(int port, std::chrono::milliseconds each) {
  const auto board = make_board();
  std::atomic<bool>& over = board->over;
  test::Process listener{[&] {
    test::PlainClient ear{static_cast<std::uint16_t>(port)};
    ear.command({"SUBSCRIBE", "bench:hop"});
    while (!over) {
      ear.read();
      if (const auto sent = board->released_at.exchange(0)) board->note(now_ns() - sent);
    }
    return 0;
  }};
  BlockingPeer mouth{port};
  for (const auto end = system_clock().steady() + each; system_clock().steady() < end;) {
    std::this_thread::sleep_for(pace);
    board->released_at = now_ns();
    mouth.command({"PUBLISH", "bench:hop", "0"});
  }
  over = true;
  mouth.command({"PUBLISH", "bench:hop", "0"});
  listener.wait();
  return board->p50();
}

double evalsha_p50(int port, std::chrono::milliseconds each) {
  const auto board = make_board();
  BlockingPeer peer{port};
  peer.command({"SCRIPT", "LOAD", std::string{scripts::lock_mutex_acquire.text}});
  const std::vector<std::string> acquire{"EVALSHA",
                                         std::string{scripts::lock_mutex_acquire.sha1},
                                         "4",
                                         "bench:one",
                                         "redisson_lock_token:{bench:one}",
                                         "sluice_lock_queue:{bench:one}",
                                         "sluice_lock_looks:{bench:one}",
                                         "owner:1",
                                         "30000",
                                         "request",
                                         "host 1 t1 bench",
                                         ""};
  for (const auto end = system_clock().steady() + each; system_clock().steady() < end;) {
    const auto sent = now_ns();
    peer.command(acquire);
    board->note(now_ns() - sent);
  }
  return board->p50();
}

/// Calls of these commands, which no script makes.
std::uint64_t commands_of_clients(test::PlainClient& side) {
  const Value stats = side.command({"INFO", "commandstats"});
  const std::string& text = stats.as_text();
  std::uint64_t all = 0;
  for (const std::string_view name : {"eval", "evalsha", "subscribe", "unsubscribe", "ping"}) {
    const std::string begins = fmt::format("cmdstat_{}:calls=", name);
    const auto at = text.find(begins);
    if (at == std::string::npos) continue;
    std::uint64_t calls = 0;
    std::from_chars(text.data() + at + begins.size(), text.data() + text.size(), calls);
    all += calls;
  }
  return all;
}

}  // namespace

Row hand_over_between_processes(int port, const Options& options) {
  Row row{.figure = "hand-over between two processes, release sent to waiter running, p50",
          .unit = "us",
          .peer = "one publish -> subscriber hop plus one EVALSHA, p50",
          .goal = 1.2,
          .at_most = true};
  for (int round = 0; round < options.rounds; ++round) {
    row.peer_values.push_back(hop_p50(port, options.each) + evalsha_p50(port, options.each));
    row.values.push_back(hand_over_p50(port, options.each));
  }
  return row;
}

Row commands_of_a_release(int port, int processes) {
  Row row{.figure = fmt::format("{} processes wait for one lock", processes),
          .unit = "commands/release",
          .goal = 4,
          .at_most = true};
  const auto board = make_board();
  std::list<test::Process> crowd;
  for (int i = 0; i < processes; ++i) crowd.emplace_back([&] { return take_turns(port, *board); });
  std::this_thread::sleep_for(std::chrono::seconds{3});  // all of them wait
  test::PlainClient side{static_cast<std::uint16_t>(port)};
  const auto commands = commands_of_clients(side);
  const auto releases = board->releases.load();
  std::this_thread::sleep_for(std::chrono::seconds{5});
  row.values.push_back(static_cast<double>(commands_of_clients(side) - commands) /
                       static_cast<double>(board->releases.load() - releases));
  board->over = true;
  for (auto& process : crowd) process.wait();
  return row;
}

}  // namespace sluice::bench
