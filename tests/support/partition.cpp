#include "support/partition.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/process.hpp"
#include "support/system_failure.hpp"

namespace sluice::test {
namespace {

/// Rules before all others, and where they lead. A route that is none (blackhole) would be an
/// error of connect(), after which redis-server tries another address of its own.
constexpr const char* rank = "10";
constexpr const char* nowhere = "200";

bool ip(std::vector<std::string> words) {
  words.insert(words.begin(), "ip");
  return Process{words, {.directory = {}, .environment = {}, .output = "/dev/null"}}.wait() == 0;
}

void need_ip(const std::vector<std::string>& words) {
  if (!ip(words)) throw std::runtime_error{fmt::format("'ip {}' fails", fmt::join(words, " "))};
}

void write(const char* path, const std::string& text) { std::ofstream{path} << text; }

/// Root of a user namespace, who may do as root does in the network namespace of it.
bool enter_as_anybody() {
  const auto user = fmt::format("0 {} 1", ::getuid());
  const auto group = fmt::format("0 {} 1", ::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  write("/proc/self/setgroups", "deny");
  write("/proc/self/uid_map", user);
  write("/proc/self/gid_map", group);
  return true;
}

Descriptor network_of_this_thread() {
  return Descriptor{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "ns/net"};
}

}  // namespace

std::string Partition::enter() try {
  if (::unshare(CLONE_NEWNET) != 0 && !enter_as_anybody())
    return fmt::format("a network namespace cannot be made: {}",
                       std::generic_category().message(errno));
  if (!ip({"link", "set", "lo", "up"})) return "'ip link set lo up' fails in a namespace";
  // What is here is looked up behind the cuts. They lead to a cable with nothing at its end.
  const bool is_ready = ip({"rule", "add", "pref", "100", "lookup", "local"}) &&
                        ip({"rule", "del", "pref", "0"}) &&
                        ip({"link", "add", "cut0", "type", "veth", "peer", "name", "cut1"}) &&
                        ip({"link", "set", "cut0", "arp", "off", "up"}) &&
                        ip({"route", "add", "default", "dev", "cut0", "table", nowhere});
  return is_ready ? "" : "'ip rule', 'link' or 'route' fails in a namespace";
} catch (const std::system_error& error) {
  return fmt::format("'ip' of iproute2 is not there: {}", error.what());
}

std::string Partition::place(int number) { return fmt::format("10.77.0.{}", number); }

void Partition::add_place(int number) {
  need_ip({"address", "add", place(number) + "/32", "dev", "lo"});
}

void Partition::cut(const std::string& one, const std::string& other) {
  need_ip({"rule", "add", "pref", rank, "from", one, "to", other, "lookup", nowhere});
  if (one != other)
    need_ip({"rule", "add", "pref", rank, "from", other, "to", one, "lookup", nowhere});
}

void Partition::heal() {
  while (ip({"rule", "del", "pref", rank})) {
  }
}

Outpost::Outpost() {
  need_ip({"link", "add", "outpost0", "type", "veth", "peer", "name", "outpost1"});
  need_ip({"address", "add", "10.78.0.1/24", "dev", "outpost0"});
  need_ip({"link", "set", "outpost0", "up"});
  const auto here = network_of_this_thread();
  std::exception_ptr failure;
  std::thread{[&] {
    try {
      if (::unshare(CLONE_NEWNET) != 0) fail("unshare");
      network_ = network_of_this_thread();
      const auto there = std::to_string(::gettid());
      std::thread{[&] {
        if (::setns(here.number(), CLONE_NEWNET) == 0)
          ip({"link", "set", "outpost1", "netns", there});
      }}.join();
      need_ip({"address", "add", std::string{address} + "/24", "dev", "outpost1"});
      need_ip({"link", "set", "outpost1", "up"});
      need_ip({"route", "add", "default", "via", "10.78.0.1"});
    } catch (...) {
      failure = std::current_exception();
    }
  }}.join();
  if (failure) std::rethrow_exception(failure);
}

Outpost::~Outpost() { ip({"link", "del", "outpost0"}); }

void Outpost::run(const std::function<void()>& body) const {
  std::exception_ptr failure;
  std::thread{[&] {
    try {
      if (::setns(network_.number(), CLONE_NEWNET) != 0) fail("setns");
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }}.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sluice::test
