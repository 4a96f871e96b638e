#include "engine/port_servers.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/free_port.hpp"
#include "support/process_cost.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_load = 120s;

std::string sluice_engine() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../../sluice-engine";
}

std::vector<std::string> command_line(Kind kind, const std::string& folder, bool logs,
                                      std::uint16_t port, const std::string& socket) {
  if (kind == Kind::engine)
    return {sluice_engine(), "serve",    logs ? folder : "--memory",        "--fsync",
            "never",         "--listen", fmt::format("127.0.0.1:{}", port), "--unix",
            socket};
  return {"redis-server",
          "--port",
          std::to_string(port),
          "--unixsocket",
          socket,
          "--dir",
          folder,
          "--save",
          "",
          "--appendfsync",
          "no",
          "--appendonly",
          logs ? "yes" : "no"};
}

}  // namespace

PortServer::PortServer(Kind kind, Log log) : port_(test::free_port()) {
  std::filesystem::create_directory(folder_ / "data");
  start(command_line(kind, folder_ / "data", log != Log::none, port_, socket()));
}

PortServer::PortServer(Kind kind, const std::string& folder) : port_(test::free_port()) {
  start(command_line(kind, folder, true, port_, socket()));
}

void PortServer::start(std::vector<std::string> argv) {
  const auto output = folder_ / "log";
  process_.emplace(argv,
                   test::ProcessOptions{.directory = {}, .environment = {}, .output = output});
  const auto deadline = std::chrono::steady_clock::now() + longest_load;
  while (std::chrono::steady_clock::now() < deadline) {
    try {
      if (!client().command({"GET", "nothing"}).is_error()) return;
    } catch (const std::exception&) {  // it does not listen yet
    }
    std::this_thread::sleep_for(2ms);
  }
  std::stringstream text;
  text << std::ifstream{output}.rdbuf();
  throw std::runtime_error{fmt::format("{} does not answer: {}", argv[0], text.str())};
}

double PortServer::cpu_us() const { return cpu_us_of(process_->pid()); }

double PortServer::memory() const { return memory_of(process_->pid()); }

}  // namespace sluice::bench
