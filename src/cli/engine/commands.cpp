#include "cli/engine/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/embedded/snapshot.hpp"
#include "net/notice.hpp"
#include "port/commands_file.hpp"
#include "port/health.hpp"
#include "port/port.hpp"
#include "port/redis_conf.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using engine::LockedEngine;
using engine::OpenedEngine;

engine::Fsync fsync_of(const std::string& word) {
  if (word == "always") return engine::Fsync::always;
  if (word == "everysec") return engine::Fsync::everysec;
  if (word == "never" || word == "no") return engine::Fsync::never;
  throw Error{Errc::bad_argument,
              fmt::format("--fsync '{}': there are always, everysec, never", word)};
}

std::string absolute(const std::string& folder) { return fs::absolute(folder).string(); }

/// Options of the command line win over the file.
port::PortConf conf_of(const EngineArgs& args) {
  port::PortConf conf;
  conf.engine.fsync = engine::Fsync::everysec;
  if (!args.config.empty()) {
    std::ifstream file{args.config};
    if (!file)
      throw Error{Errc::bad_argument, fmt::format("--config {}: it cannot be read", args.config)};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    port::read_redis_conf(text, args.config, conf);
  }
  if (!args.folder.empty()) conf.engine.path = args.folder;
  if (args.in_memory) {
    if (!args.folder.empty())
      throw Error{Errc::bad_argument, "--memory and a folder contradict each other: give one"};
    conf.engine.path.clear();
  } else if (conf.engine.path.empty() && args.config.empty()) {
    throw Error{Errc::bad_argument, "give the folder of the data, or --memory to keep none"};
  }
  if (!conf.engine.path.empty()) conf.engine.path = absolute(conf.engine.path);
  if (!args.listen.empty()) conf.port.listen.clear();
  for (const auto& address : args.listen) conf.port.listen.push_back({net::read_endpoint(address)});
  if (conf.port.listen.empty())
    conf.port.listen.push_back({{.host = "127.0.0.1", .port = 6379, .unix_path = {}}});
  if (!args.unix_socket.empty())
    conf.port.listen.push_back({{.host = "", .port = 0, .unix_path = absolute(args.unix_socket)}});
  if (args.threads != 0) conf.port.threads = args.threads;
  if (!args.fsync.empty()) conf.engine.fsync = fsync_of(args.fsync);
  return conf;
}

/// Where `embedded:/FOLDER?share=1` finds the server of a folder. Empty: the path is too long for a
/// socket.
std::string own_socket_of(const std::string& folder) {
  constexpr std::size_t longest = 107;
  auto path = folder + "/" + std::string{engine::own_socket};
  return path.size() <= longest ? path : "";
}

int serve(const EngineArgs& args) {
  const StopOnSignal signals;  // before any other thread
  auto conf = conf_of(args);
  for (const auto& remark : conf.remarks) log(LogLevel::warning, remark);
  const auto opened = OpenedEngine::open(conf.engine);
  if (const auto own = own_socket_of(conf.engine.path); !conf.engine.path.empty() && !own.empty())
    conf.port.listen.push_back({{.host = "", .port = 0, .unix_path = own}});
  port::Port served{*opened, conf.port};
  std::optional<port::Health> health;
  if (!args.health.empty()) health.emplace(served, net::read_endpoint(args.health));
  std::string places;
  for (const auto& [endpoint, tls] : served.listens_at())
    places += fmt::format("{}{}{}", places.empty() ? "" : ", ", net::to_string(endpoint),
                          tls ? " (TLS)" : "");
  log(LogLevel::info,
      fmt::format("ready at {}: {} keys, {}, process {}", places, served.figures().keys,
                  conf.engine.path.empty() ? "in memory alone" : "in " + conf.engine.path,
                  ::getpid()));
  net::tell_manager("READY=1");
  const std::stop_callback stop{signals.token(), [&served] { served.stop(); }};
  served.wait();
  net::tell_manager("STOPPING=1");
  log(LogLevel::info, "ends: what was acknowledged is in the log");
  return exit_ok;
}

std::unique_ptr<OpenedEngine> open(const EngineArgs& args) {
  if (!fs::is_directory(args.folder))
    throw Error{Errc::bad_argument, fmt::format("there is no folder {}", args.folder)};
  return OpenedEngine::open({.path = absolute(args.folder)});
}

void tell(const EngineArgs& args, OpenedEngine& opened, std::string_view what) {
  const auto& report = opened.report();
  std::size_t keys = 0;
  for (int database = 0; database < engine::Engine::databases; ++database)
    keys += opened.engine().engine().keyspace(database).size();
  if (args.json)
    return put("{}\n", Json::object({{"folder", args.folder},
                                     {"keys", keys},
                                     {"commands", report.commands},
                                     {"cut_bytes", report.cut_bytes}})
                           .text());
  put("{}: {}, {} keys\n", args.folder, what, keys);
}

int check(const EngineArgs& args) {
  const auto opened = open(args);
  tell(args, *opened, "good");
  return exit_ok;
}

int compact(const EngineArgs& args) {
  const auto opened = open(args);
  opened->rewriter()->start();
  opened->rewriter()->wait();
  tell(args, *opened, "written anew");
  return exit_ok;
}

/// All data as commands in RESP, which any server takes (redis-cli --pipe).
int dump(const EngineArgs& args) {
  const auto opened = open(args);
  engine::Snapshot snapshot{opened->engine().engine()};
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (bool more = true; more;) {
    {
      const LockedEngine::Section section{opened->engine()};
      more = snapshot.collect(piece);
    }
    const auto records = snapshot.take();
    if (std::fwrite(records.data(), 1, records.size(), stdout) != records.size())
      throw Error{Errc::out_of_space, "standard output takes no more"};
  }
  return exit_ok;
}

/// Executes the commands of a file, or of standard input.
int load(const EngineArgs& args) {
  constexpr std::uint64_t most_told = 10;
  const auto opened = OpenedEngine::open({.path = absolute(args.folder)});
  std::FILE* const file = args.file == "-" ? stdin : std::fopen(args.file.c_str(), "rb");
  if (!file) throw Error{Errc::bad_argument, fmt::format("{} cannot be read", args.file)};
  std::uint64_t told = 0;
  const auto loaded = port::execute_commands(
      *opened,
      [file](std::span<char> into) { return std::fread(into.data(), 1, into.size(), file); },
      [&told](std::uint64_t number, std::string_view name, std::string_view error) {
        if (++told <= most_told) complain("command {}, {}: {}", number, name, error);
      });
  tell(args, *opened,
       fmt::format("{} commands executed, {} refused", loaded.executed, loaded.refused));
  return loaded.refused == 0 ? exit_ok : exit_bad_data;
}

}  // namespace

std::vector<Command> engine_commands(EngineArgs& args) {
  const Argument folder{"FOLDER", "Folder of the engine's files", into(args.folder)};
  Argument perhaps = folder;
  perhaps.required = false;
  return {
      {.name = "serve",
       .summary = "Serve a folder at a port of Redis's protocol until INT or TERM",
       .arguments = {perhaps},
       .options = {{"--listen", "HOST:PORT",
                    "Where clients come in (127.0.0.1:6379); may be repeated", into(args.listen)},
                   {"--unix", "PATH", "A unix socket besides", into(args.unix_socket)},
                   {"--io-threads", "N", "Threads that have connections (1)",
                    into(args.threads, 1, 128)},
                   {"--config", "FILE", "A redis.conf; options of the command line win",
                    into(args.config)},
                   {"--health", "HOST:PORT", "Answer /livez, /readyz and /metrics there, over HTTP",
                    into(args.health)},
                   {"--fsync", "WHEN", "When a reply is given: always, everysec, never",
                    into(args.fsync)},
                   {"--memory", "", "Keep nothing on disk", into(args.in_memory)}},
       .action = [&args] { return serve(args); }},
      {.name = "check",
       .summary = "Load a folder, and say what is in it",
       .arguments = {folder},
       .action = [&args] { return check(args); }},
      {.name = "compact",
       .summary = "Write the files of a folder anew, as small as they can be",
       .arguments = {folder},
       .action = [&args] { return compact(args); }},
      {.name = "dump",
       .summary = "Print all data as commands of Redis's protocol",
       .arguments = {folder},
       .action = [&args] { return dump(args); }},
      {.name = "load",
       .summary = "Execute the commands of a file, as dump prints them",
       .arguments = {folder, {"FILE", "Commands; - is standard input", into(args.file)}},
       .action = [&args] { return load(args); }},
      move_command(args)};
}

}  // namespace sluice::cli
