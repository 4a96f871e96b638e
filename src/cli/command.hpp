/// What the commands of the program share: the global options, the store, and how they are added.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sluice/store.hpp"

namespace CLI {
class App;  // its header takes seconds to compile: only what adds options includes it
}

namespace sluice::cli {

struct Globals {
  std::string store;  ///< empty: $SLUICE_STORE, or what suits the command
  bool json = false;
};

/// What the chosen command does; its result is the exit code.
using Action = std::function<int()>;

/// Opens --store, else $SLUICE_STORE, else a Redis on this machine.
std::unique_ptr<Store> open_store(const Globals& globals);
std::string store_url(const Globals& globals);

/// "250ms", "5s", "2m", "1h", "1d"; a bare number is seconds. Throws Error{bad_argument}.
std::chrono::milliseconds parse_duration(const std::string& text);

void add_lock_command(CLI::App& app, const Globals& globals, Action& action);
void add_semaphore_command(CLI::App& app, const Globals& globals, Action& action);
void add_latch_command(CLI::App& app, const Globals& globals, Action& action);
void add_locks_command(CLI::App& app, const Globals& globals, Action& action);
void add_number_command(CLI::App& app, const Globals& globals, Action& action);
void add_id_command(CLI::App& app, const Globals& globals, Action& action);
void add_sale_command(CLI::App& app, const Globals& globals, Action& action);
void add_proxy_command(CLI::App& app, const Globals& globals, Action& action);
void add_demo_command(CLI::App& app, const Globals& globals, Action& action);
void add_bench_command(CLI::App& app, const Globals& globals, Action& action);
void add_doctor_command(CLI::App& app, const Globals& globals, Action& action);

}  // namespace sluice::cli
