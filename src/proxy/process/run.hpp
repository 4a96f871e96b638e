/// The proxy as a process: started as nutcracker is, reloaded, drained and ended by signals and by
/// its administration.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/process/options.hpp"

namespace sluice::proxy::process {

/// What the process knows of its program.
struct Program {
  std::string version;                 ///< our own
  std::vector<std::string> arguments;  ///< as it was started, its name first
  std::string path;                    ///< filled by run()
};

/// config::check(), and the certificates and keys that it names are read: what `-t` tests. Throws
/// Error of what is wrong.
Config test_config(const std::string& path);

/// Serves until a signal or the administration ends it; the exit code, as nutcracker's where it has
/// one: 0 drained, 1 ended by INT, by a second TERM, or not started. Why it could not start is in
/// the log, and on stderr.
/// REQUIRES: no other thread is there yet.
int run(const Options& options, Program program);

}  // namespace sluice::proxy::process
