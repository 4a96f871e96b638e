/// What the commands of the program share: the options of all, and the store.
#pragma once

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

// Rows of the table. `globals` must outlive them.
Command lock_command(const Globals& globals);
Command semaphore_command(const Globals& globals);
Command latch_command(const Globals& globals);
Command locks_command(const Globals& globals);
Command number_command(const Globals& globals);
Command id_command(const Globals& globals);
Command bloom_command(const Globals& globals);
Command sale_command(const Globals& globals);
Command room_command(const Globals& globals);
Command demo_command(const Globals& globals);
/// Hidden: one of the demo's processes.
Command demo_instance_command(const Globals& globals);
Command bench_command(const Globals& globals);
Command load_command(const Globals& globals);
Command doctor_command(const Globals& globals);
Command explain_command(const Globals& globals);

}  // namespace sluice::cli
