#include "proxy/support/proxy_program.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "proxy/support/listening.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"

namespace sluice::test {

ProxyProgram::ProxyProgram(std::vector<std::string> pool, ProgramOptions options)
    : options_(std::move(options)) {
  constexpr int tries = 5;  // another program may take the free ports before it does
  for (int left = tries; left > 0; --left) {
    port_ = free_port();
    stats_port_ = free_port();
    if (try_start(pool)) return;
  }
  throw std::runtime_error{"the proxy does not start:\n" + log()};
}

std::string ProxyProgram::log() const {
  return text_of(directory_ / "log") + text_of(directory_ / "output");
}

void ProxyProgram::write_text(const std::string& text) { std::ofstream{config()} << text; }

void ProxyProgram::write(const std::vector<std::string>& pool, const std::string& more) {
  std::string text = "sluice:\n  admin: " + admin() + '\n';
  for (const auto& line : options_.process) text += "  " + line + '\n';
  text += "alpha:\n  listen: 127.0.0.1:" + std::to_string(port_) + '\n';
  for (const auto& line : pool) text += "  " + line + '\n';
  write_text(text + more);
}

bool ProxyProgram::try_start(const std::vector<std::string>& pool) {
  write(pool);
  std::vector<std::string> argv{test::built_path("sluice"), "proxy"};
  if (!options_.program.empty()) argv = {options_.program};
  if (options_.as_nutcracker) {
    const auto link = directory_ / "nutcracker";
    std::filesystem::remove(link);
    std::filesystem::create_symlink(test::built_path("sluice"), link);
    argv = {link.string()};
  }
  const std::vector<std::string> usual{
      "-c", config(),  "-o", (directory_ / "log").string(), "-s", std::to_string(stats_port_),
      "-p", pid_file()};
  argv.insert(argv.end(), usual.begin(), usual.end());
  argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
  if (options_.descriptors != 0)
    argv.insert(argv.begin(), {"prlimit", "--nofile=" + std::to_string(options_.descriptors)});
  process_.emplace(argv, ProcessOptions{.directory = directory_.path(),
                                        .environment = options_.environment,
                                        .output = directory_ / "output"});
  if (comes_to_listen(*process_, port_) && has_started()) return true;
  process_->kill();
  process_.reset();
  return false;
}

ProxyProgram::~ProxyProgram() {
  if (const pid_t successor = serving_pid();
      successor > 0 && process_ && successor != process_->pid())
    ::kill(successor, SIGKILL);  // not our child
}

pid_t ProxyProgram::serving_pid() const {
  const auto text = text_of(pid_file());
  return text.empty() ? -1 : static_cast<pid_t>(std::stol(text));
}

/// The file comes when everything is open.
bool ProxyProgram::has_started() {
  while (process_->running() && serving_pid() < 0)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return process_->running();
}

Value ProxyProgram::ask(std::initializer_list<std::string_view> words) {
  return PlainClient{admin()}.command(words);
}

std::string ProxyProgram::statistics() const { return statistics_at(stats_port_); }

std::string statistics_at(std::uint16_t port) { return talk(port, "", "").bytes; }

}  // namespace sluice::test
