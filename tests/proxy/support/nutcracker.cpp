#include "proxy/support/nutcracker.hpp"

#include <fstream>
#include <stdexcept>

#include "proxy/support/listening.hpp"
#include "support/free_port.hpp"

namespace sluice::test {
namespace {

std::vector<std::string> pool(std::string_view redis, const std::vector<std::uint16_t>& ports) {
  std::vector<std::string> lines{"redis: " + std::string{redis}, "servers:"};
  for (const auto port : ports) lines.push_back(" - 127.0.0.1:" + std::to_string(port) + ":1");
  return lines;
}

}  // namespace

Nutcracker::Nutcracker(std::vector<std::string> lines, std::vector<std::string> arguments)
    : lines_(std::move(lines)), arguments_(std::move(arguments)) {
  constexpr int tries = 5;  // another program may take the free ports before it does
  for (int left = tries; left > 0; --left) {
    port_ = free_port();
    stats_port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error{"nutcracker does not start:\n" + log()};
}

std::string Nutcracker::config() const { return text_of(directory_ / "nutcracker.yml"); }
std::string Nutcracker::log() const { return text_of(directory_ / "nutcracker.log"); }

bool Nutcracker::try_start() {
  std::ofstream file{directory_ / "nutcracker.yml"};
  file << "alpha:\n  listen: 127.0.0.1:" << port_ << '\n';
  for (const auto& line : lines_) file << "  " << line << '\n';
  file.close();
  std::vector<std::string> argv{"nutcracker",
                                "-c",
                                (directory_ / "nutcracker.yml").string(),
                                "-o",
                                (directory_ / "nutcracker.log").string(),
                                "-a",
                                "127.0.0.1",
                                "-s",
                                std::to_string(stats_port_)};
  argv.insert(argv.end(), arguments_.begin(), arguments_.end());
  process_.emplace(argv, ProcessOptions{.directory = directory_.path(),
                                        .environment = {},
                                        .output = directory_ / "out.log"});
  if (comes_to_listen(*process_, port_)) return true;
  process_->kill();
  process_.reset();
  return false;
}

std::vector<std::string> redis_pool(const std::vector<std::uint16_t>& ports) {
  return pool("true", ports);
}

std::vector<std::string> memcached_pool(const std::vector<std::uint16_t>& ports) {
  return pool("false", ports);
}

}  // namespace sluice::test
