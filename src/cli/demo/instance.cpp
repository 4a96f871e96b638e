#include "cli/demo/instance.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace sluice::cli {

Instance::Instance(const std::vector<std::string>& places, const std::vector<std::string>& words) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.number(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.number(), STDOUT_FILENO);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;  // without them it would not hear the signals that this one awaits
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int failed = ENOENT;
  for (const auto& place : places) {
    failed = ::posix_spawnp(&pid_, place.c_str(), &actions, &attributes, argv.data(), environ);
    if (failed != ENOENT) break;
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw std::system_error{failed, std::generic_category(), "cannot start another instance"};
  to_ = std::move(in.write);
  from_ = std::move(out.read);
}

Instance::~Instance() {
  go();
  from_.close();
  wait();
}

void Instance::terminate() const noexcept {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
}

int Instance::wait() {
  int status = 0;
  if (pid_ <= 0) return 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string Instance::line() {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return text;
    }
    char chunk[65536];
    const auto got = ::read(from_.number(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw std::runtime_error{"an instance of the demo ended early; see what it said above"};
    buffer_.append(chunk, static_cast<std::size_t>(got));
  }
}

}  // namespace sluice::cli
