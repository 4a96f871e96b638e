#include "proxy/process/handover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "proxy/flow/handover.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

constexpr const char* variable = "SLUICE_PROXY_HERITAGE";
constexpr std::chrono::milliseconds start_patience{10000};

/// The files and attributes of a process to be spawned.
struct SpawnPlan {
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// The successor has it under the same number; no other descriptor survives exec.
  void keep(int descriptor) { ::posix_spawn_file_actions_adddup2(&files, descriptor, descriptor); }
  /// This process blocks its signals to read them from a descriptor; the successor must not begin
  /// so.
  void unblock_signals() {
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

std::vector<std::string> environment_with(const std::string& inherited) {
  const std::string ours = std::string{variable} + '=';
  std::vector<std::string> all{ours + inherited};
  for (char** entry = environ; *entry; ++entry)
    if (!std::string_view{*entry}.starts_with(ours)) all.emplace_back(*entry);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

enum class Start { serves, ended, timed_out };

/// `version`: of the handover of clients, when it serves.
Start wait_for_start(int descriptor, char& version) {
  pollfd wait{descriptor, POLLIN, 0};
  int came = 0;
  do {
    came = ::poll(&wait, 1, static_cast<int>(start_patience.count()));
  } while (came < 0 && errno == EINTR);
  if (came <= 0) return Start::timed_out;
  return ::read(descriptor, &version, 1) == 1 ? Start::serves : Start::ended;
}

/// A channel for clients: our end, and the successor's.
std::pair<Descriptor, Descriptor> make_channel() {
  int ends[2]{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    throw Error{Errc::connection,
                fmt::format("not upgraded, this process goes on: no channel for clients: {}",
                            std::strerror(errno))};
  return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

[[noreturn]] void refuse(pid_t successor, Start start) {
  if (start == Start::timed_out) ::kill(successor, SIGKILL);
  int status = 0;
  ::waitpid(successor, &status, 0);
  throw Error{
      Errc::connection,
      start == Start::timed_out
          ? fmt::format("not upgraded, this process goes on: the new one did not serve within {} s",
                        start_patience.count() / 1000)
          : fmt::format("not upgraded, this process goes on: the new one ended ({} {}); its log "
                        "says why",
                        WIFEXITED(status) ? "code" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status))};
}

int inherited_descriptor(const nlohmann::json& number) {
  const int descriptor = number.get<int>();
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    throw Error{Errc::bad_argument, fmt::format("{}: {} is no descriptor", variable, descriptor)};
  return descriptor;
}

}  // namespace

std::string service_name(std::string_view what, const net::Endpoint& endpoint) {
  return fmt::format("{} {}", what, net::to_string(endpoint));
}

InheritedSockets InheritedSockets::take() {
  InheritedSockets inherited;
  const char* const text = std::getenv(variable);
  if (!text) return inherited;
  try {
    const auto json = nlohmann::json::parse(text);
    ::unsetenv(variable);
    for (const auto& [listen, descriptors] : json.at("pools").items())
      for (const auto& descriptor : descriptors)
        inherited.pools_[listen].emplace_back(inherited_descriptor(descriptor));
    for (const auto& [name, descriptor] : json.at("doors").items())
      inherited.services_.emplace(
          name, ListeningSocket{net::ServerSocket{inherited_descriptor(descriptor)}});
    for (const auto& descriptor : json.value("clients", nlohmann::json::array()))
      inherited.channels_.emplace_back(inherited_descriptor(descriptor));
    inherited.gets_clients_ = !inherited.channels_.empty();
    inherited.generation_ = json.value("generation", std::uint64_t{0});
    inherited.predecessor_ = json.value("process", 0);
    inherited.ready_ = Descriptor{inherited_descriptor(json.at("ready"))};
  } catch (const nlohmann::json::exception& bad) {
    throw Error{Errc::bad_argument, fmt::format("{}: {}", variable, bad.what())};
  }
  return inherited;
}

ListeningSocket InheritedSockets::open(std::string_view what, const net::Endpoint& endpoint) {
  const auto found = services_.find(service_name(what, endpoint));
  if (found == services_.end()) return open_socket(what, endpoint);
  auto listening = std::move(found->second);
  services_.erase(found);
  listening.take_path(endpoint.unix_path);
  return listening;
}

void InheritedSockets::ready() noexcept {
  if (!is_successor()) return;
  const char version = gets_clients_ ? flow::ClientHandover::version : 0;
  static_cast<void>(!::write(ready_.number(), &version, 1));  // the predecessor may be gone
  ready_.close();
}

Successor start_successor(const std::string& path, const std::vector<std::string>& arguments,
                          const Handover& handover) {
  Pipe ready = make_pipe();
  Successor successor;
  std::vector<Descriptor> its_channels;
  std::vector<int> numbers;
  for (std::size_t i = 0; i < handover.channels; ++i) {
    auto [ours, its] = make_channel();
    numbers.push_back(its.number());
    successor.channels.push_back(std::move(ours));
    its_channels.push_back(std::move(its));
  }
  SpawnPlan plan;
  plan.unblock_signals();
  plan.keep(ready.write.number());
  for (const auto& [listen, descriptors] : handover.pools)
    for (const int descriptor : descriptors) plan.keep(descriptor);
  for (const auto& [name, descriptor] : handover.services) plan.keep(descriptor);
  for (const int descriptor : numbers) plan.keep(descriptor);
  const nlohmann::json inherited{{"ready", ready.write.number()},     {"pools", handover.pools},
                                 {"doors", handover.services},        {"clients", numbers},
                                 {"generation", handover.generation}, {"process", ::getpid()}};
  auto words = arguments;
  auto environment = environment_with(inherited.dump());
  const int failure = ::posix_spawn(&successor.process, path.c_str(), &plan.files, &plan.attributes,
                                    pointers(words).data(), pointers(environment).data());
  if (failure != 0)
    throw Error{Errc::connection,
                fmt::format("not upgraded, this process goes on: '{}' cannot be started: {}", path,
                            std::strerror(failure))};
  ready.write.close();
  char version = 0;
  const auto start = wait_for_start(ready.read.number(), version);
  if (start != Start::serves) refuse(successor.process, start);
  if (version == 0) successor.channels.clear();
  successor.version = version;
  return successor;
}

}  // namespace sluice::proxy::process
