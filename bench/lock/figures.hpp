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

/// 100,000 locks that one process holds: memory, and what their renewal sends.
std::vector<Row> many_holds(Store& store);
/// What a name costs that this process has not used, beside the script: on an embedded engine.
Row time_of_a_new_name();
/// A pair on an embedded engine against Store::run of its scripts, and against PUC Lua that runs
/// them with empty commands.
std::vector<Row> pair_beside_its_scripts(const Options& options);

/// What the server spends on each release of 4000 readers whose leases end together.
Row release_of_many_readers(int port);
/// 16 threads on one lock with Durability of one replica, against one thread.
Row durable_lock_of_many_threads(const Options& options);
/// Sections of four Redisson waiters, beside a thread of ours that never rests.
Row share_of_java(int port, const Options& options);

/// Of a coroutine that waits for a Mutex, whatever it takes, in bytes.
Row memory_of_a_waiting_task();

}  // namespace sluice::bench
