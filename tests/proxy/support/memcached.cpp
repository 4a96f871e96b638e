#include "proxy/support/memcached.hpp"

#include <stdexcept>

#include "proxy/support/listening.hpp"
#include "support/free_port.hpp"

namespace sluice::test {

Memcached::Memcached(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  constexpr int tries = 5;  // another program may take the free port before it does
  for (int left = tries; left > 0; --left) {
    port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error{"memcached does not start:\n" + text_of(output())};
}

std::string Memcached::address() const { return "127.0.0.1:" + std::to_string(port_); }

bool Memcached::try_start() {
  std::vector<std::string> argv{"memcached", "-l", "127.0.0.1", "-p", std::to_string(port_),
                                "-U",        "0",  "-t",        "1",  "-u",
                                "nobody"};
  argv.insert(argv.end(), arguments_.begin(), arguments_.end());
  process_.emplace(
      argv, ProcessOptions{.directory = directory_.path(), .environment = {}, .output = output()});
  if (comes_to_listen(*process_, port_)) return true;
  kill();
  return false;
}

void Memcached::kill() {
  if (process_) process_->kill();
  process_.reset();
}

void Memcached::start() {
  if (!process_ && !try_start())
    throw std::runtime_error{"memcached does not start again:\n" + text_of(output())};
}

void Memcached::stop() { process_->stop(); }
void Memcached::cont() { process_->cont(); }

}  // namespace sluice::test
