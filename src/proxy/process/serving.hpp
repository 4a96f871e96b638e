/// The proxy and the services beside it, from ready to ended. The main thread carries out what
/// signals and the administration ask for, one after the other.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "proxy/flow/proxy.hpp"
#include "proxy/process/admin.hpp"
#include "proxy/process/handover.hpp"
#include "proxy/process/log_file.hpp"
#include "proxy/process/management_server.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"
#include "proxy/process/signals.hpp"

namespace sluice::proxy::process {

/// Work that other threads leave to the main thread, which alone reloads, upgrades and drains.
class TaskQueue {
 public:
  using Job = std::function<std::string()>;

  TaskQueue();
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Any thread but the main one: waits for run_all(), returns what `job` returned or throws what
  /// it threw. Throws Error{closed} after end().
  std::string ask(Job job);

  /// Readable when there is work.
  int descriptor() const noexcept { return wake_; }
  void run_all();
  /// Every ask(), now waiting or to come, throws.
  void end();

 private:
  using Task = std::packaged_task<std::string()>;
  std::deque<Task> take();

  const int wake_;
  std::mutex mutex_;
  std::deque<Task> asked_;
  bool ended_ = false;
};

/// What it is given by its process.
struct ProcessParts {
  LogFile& log;
  Signals& signals;
  InheritedSockets& inherited;
};

class Serving {
 public:
  /// Opens every socket that the configuration names. Throws Error or std::system_error.
  Serving(const Options& options, const Program& program, Config config, ProcessParts parts);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  /// Serves until a signal or the administration ends it; the exit code.
  int run();

 private:
  AdminActions actions();
  void wait();
  void obey(const Signal& signal);
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
  TaskQueue tasks_;
  AdminActions actions_;
  Proxy proxy_;
  std::optional<ManagementServer> management_;
  std::map<std::string, int> services_;   // descriptors, by service_name()
  std::optional<SteadyTime> drained_by_;  // while it drains
  std::optional<int> exit_code_;
};

}  // namespace sluice::proxy::process
