/// What the commands of the program share: the options of all, the store, and main().
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "cli/command_line/command.hpp"
#include "sluice/open.hpp"

namespace sluice::cli {

struct Globals {
  std::string store;  ///< empty: $SLUICE_STORE, or what suits the command
  bool json = false;
  bool verbose = false;
};

/// Opens --store, else $SLUICE_STORE, else a Redis on this machine.
std::unique_ptr<Store> open_store(const Globals& globals, const OpenOptions& how = {});
std::string store_url(const Globals& globals);
/// Warns on stderr when the store is in the memory of this process, so that no other process shares
/// `what`.
void warn_if_in_memory(const Globals& globals, std::string_view what);

/// A row of the table. `globals` must outlive it.
using MakeCommand = Command (*)(const Globals& globals);

// Rows of the program `sluice`.
Command lock_command(const Globals& globals);
Command semaphore_command(const Globals& globals);
Command latch_command(const Globals& globals);
Command locks_command(const Globals& globals);
Command number_command(const Globals& globals);
Command id_command(const Globals& globals);
Command bloom_command(const Globals& globals);
Command sale_command(const Globals& globals);
Command room_command(const Globals& globals);
// Of the programs that it becomes, programs.hpp.
Command demo_command(const Globals& globals);
/// Hidden: one of the demo's processes.
Command demo_instance_command(const Globals& globals);
Command bench_command(const Globals& globals);
Command load_command(const Globals& globals);
/// Hidden: the buyers of `sluice demo --http`.
Command demo_crowd_command(const Globals& globals);
Command doctor_command(const Globals& globals);
Command explain_command(const Globals& globals);

/// The options of `sluice`, which set `globals`, and these of its commands.
Command table_of(Globals& globals, std::initializer_list<MakeCommand> rows);

/// What main() returns: prepares the streams and the log, does `work`, and reports what it throws.
int run_main(const std::function<int()>& work);
/// main() of a program that has some commands of `sluice`: it understands the whole line.
int run_commands(std::initializer_list<MakeCommand> rows, int argc, char** argv);

}  // namespace sluice::cli
