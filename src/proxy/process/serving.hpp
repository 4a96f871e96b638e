/// The proxy and what is served beside it, from ready to ended. The thread that made it carries out
/// what signals and the administration order, one after the other.
#pragma once

#include <optional>
#include <string>

#include "proxy/flow/proxy.hpp"
#include "proxy/process/admin.hpp"
#include "proxy/process/errands.hpp"
#include "proxy/process/heritage.hpp"
#include "proxy/process/log_file.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"
#include "proxy/process/side_server.hpp"
#include "proxy/process/signals.hpp"

namespace sluice::proxy {

/// What it is given by its process.
struct ProcessParts {
  LogFile& log;
  Signals& signals;
  Heritage& heritage;
};

class Serving {
 public:
  /// Opens all that the configuration names; throws Error or std::system_error when something of it
  /// cannot be had.
  Serving(const Options& options, const Program& program, Config config, ProcessParts parts);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  /// Serves until it is told to end; the exit code.
  int run();

 private:
  AdminActions actions();
  void wait();
  void obey(const SignalOrder& order);
  void set_level(int level);
  void drain(std::string_view why);
  std::string reload();
  void try_reload();
  std::string check();
  std::string upgrade();

  const Options& options_;
  const Program& program_;
  LogFile& log_;
  Signals& signals_;
  Errands errands_;
  AdminActions actions_;
  Proxy proxy_;
  std::optional<SideServer> side_server_;
  std::map<std::string, int> doors_;      // descriptors, by door_name()
  std::optional<SteadyTime> drained_by_;  // while it drains
  std::optional<int> exit_code_;
};

}  // namespace sluice::proxy
