/// The figures of locks that take more than one thread, one process or one lock.
#pragma once

#include "sluice/store.hpp"
#include "support/report.hpp"

namespace sluice::bench {

/// 16 threads of one process on one lock, against acquire + release by one thread.
Row one_lock_of_many_threads(Store& store, const Options& options);
/// 32 threads on 1000 locks at random, 10,000 times each, against one thread.
Row many_locks_of_many_threads(Store& store, const Options& options);
/// Four threads on four locks of one embedded engine, against one thread.
Row locks_of_one_engine(const Options& options);

/// From the release's sending in one process to the waiter's running in another, the median,
/// against one publish -> subscriber hop plus one EVALSHA, both between blocking hiredis clients.
Row hand_over_between_processes(int port, const Options& options);
/// What a server is sent for each release while `processes` processes wait for one lock.
Row commands_of_a_release(int port, int processes);

/// What is sent in a third of a lease by a program that holds `holds` locks and does nothing else.
Row commands_of_a_cycle(Store& store, int holds);
/// Of a coroutine that waits for a Mutex, whatever it takes, in bytes.
Row memory_of_a_waiting_task();

}  // namespace sluice::bench
