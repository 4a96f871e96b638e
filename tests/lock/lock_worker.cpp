/// A process of its own that uses a lock, for tests that stop and kill it.
///   lock_worker rounds URL NAME ROUNDS RECORD
///     enters ROUNDS times, and says so in the history RECORD
///   lock_worker busy URL NAME MS RECORD
///     is in for so long again and again, without a pause, until it is killed
///   lock_worker hold URL NAME LEASE_MS GATE
///     enters, says so on the list "entered", waits for a byte from the fifo GATE, and exits with 1
///     if it then believes that it holds, else with 0
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "support/history.hpp"

namespace sluice {
namespace {

int enter_and_leave(Store& store, const std::string& name, int rounds, const char* path) {
  test::Recorder record{path, "process-" + std::to_string(::getpid())};
  Mutex mutex{store, name};
  for (int round = 0; round < rounds; ++round) {
    auto held = mutex.acquire().get();
    record.enter(held.token().value);
    record.leave();
    if (round % 2) held.release().get();  // and by its destructor otherwise
  }
  return 0;
}

[[noreturn]] void be_busy(Store& store, const std::string& name, int ms, const char* path) {
  test::Recorder record{path, "process-" + std::to_string(::getpid())};
  Mutex mutex{store, name};
  for (;;) {
    const auto held = mutex.acquire().get();
    record.enter(held.token().value);
    std::this_thread::sleep_for(std::chrono::milliseconds{ms});
    record.leave();
  }
}

int hold(Store& store, const std::string& name, int lease_ms, const char* path) {
  Mutex mutex{store, name, {.lease = std::chrono::milliseconds{lease_ms}}};
  Held held;
  while (!held.valid()) try {
      held = mutex.acquire().get();
    } catch (const Error&) {  // the lease is brief, and the machine may be slow
    }
  store.run({"RPUSH", "entered", std::to_string(held.token().value)}).get();
  const int gate = ::open(path, O_RDONLY | O_CLOEXEC);
  char byte = 0;
  if (::read(gate, &byte, 1) != 1) return 2;
  const auto commands = metrics().redis_commands.load();
  const bool valid = held.valid();
  if (metrics().redis_commands.load() != commands) return 3;
  ::_exit(valid ? 1 : 0);  // without the release
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  if (count != 6) return 64;
  const std::string verb = words[1];
  const auto store = sluice::open(words[2]);
  const int number = std::stoi(words[4]);
  if (verb == "busy") sluice::be_busy(*store, words[3], number, words[5]);
  return verb == "hold" ? sluice::hold(*store, words[3], number, words[5])
                        : sluice::enter_and_leave(*store, words[3], number, words[5]);
}
