/// The program sluice-engine, which `sluice engine` becomes: the engine at a port.
#include <fmt/format.h>

#include <csignal>
#include <string_view>
#include <thread>

#include "base/thread.hpp"
#include "cli/command_line/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "port/port.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

void log_to_stderr(LogLevel level, std::string_view message) {
  if (level >= LogLevel::info) complain_line(message);
}

struct EngineArgs {
  std::string folder;
  std::vector<std::string> listen;
  std::string unix_socket;
  std::string fsync = "everysec";
  std::size_t threads = 1;
};

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice;
  using namespace sluice::cli;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  set_log_sink(log_to_stderr);
  engine::EmbeddedOptions options;
  options.fsync = engine::Fsync::everysec;
  port::PortSettings settings;
  std::uint16_t port_number = 6379;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key{argv[i]};
    if (key == "--port") port_number = static_cast<std::uint16_t>(std::atoi(argv[i + 1]));
    if (key == "--dir") options.path = argv[i + 1];
    if (key == "--threads") settings.threads = static_cast<std::size_t>(std::atoi(argv[i + 1]));
    if (key == "--unix")
      settings.listen.push_back({.host = "", .port = 0, .unix_path = argv[i + 1]});
    if (key == "--password") settings.password = argv[i + 1];
    if (key == "--fsync")
      options.fsync = std::string_view{argv[i + 1]} == "no"       ? engine::Fsync::never
                      : std::string_view{argv[i + 1]} == "always" ? engine::Fsync::always
                                                                  : engine::Fsync::everysec;
  }
  settings.listen.insert(settings.listen.begin(),
                         {.host = "127.0.0.1", .port = port_number, .unix_path = {}});
  try {
    auto opened = engine::OpenedEngine::open(options);
    port::Port served{*opened, settings};
    std::thread{[&served, &set] {
      int number = 0;
      sigwait(&set, &number);
      served.stop();
    }}.detach();
    served.wait();
  } catch (const std::exception& failure) {
    return report(failure);
  }
  return 0;
}
