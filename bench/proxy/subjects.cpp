#include "proxy/subjects.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/process_cost.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

bool answers(std::uint16_t port) {
  try {
    test::PlainClient client{port};
    return !client.command({"GET", "nothing"}).is_error();
  } catch (const std::exception&) {
    return false;  // not yet
  }
}

}  // namespace

double Subject::cpu_us() const { return cpu_us_of(process.pid()); }

double Subject::memory() const { return memory_of(process.pid()); }

Subjects::Subjects(std::filesystem::path build_tree) : build_tree_(std::move(build_tree)) {}

std::string Subjects::config(std::uint16_t port, const std::string& more) const {
  return fmt::format(
      "{}pool:\n  listen: 127.0.0.1:{}\n  redis: true\n  timeout: 2000\n  servers:\n   - "
      "127.0.0.1:{}:1 one\n   - "
      "127.0.0.1:{}:1 two\n",
      more, port, first_.port(), second_.port());
}

Subject Subjects::start(std::string name, std::uint16_t port,
                        const std::vector<std::string>& argv) {
  const auto output = directory_.path() / fmt::format("{}.log", ++started_);
  Subject subject{std::move(name), port,
                  test::Process{argv, {.directory = {}, .environment = {}, .output = output}}};
  for (int i = 0; i < 500; ++i) {
    if (answers(port)) return subject;
    std::this_thread::sleep_for(10ms);
  }
  std::stringstream text;
  text << std::ifstream{output}.rdbuf();
  throw std::runtime_error{fmt::format("{} does not answer: {}", subject.name, text.str())};
}

Subject Subjects::sluice(int workers) {
  const auto port = test::free_port();
  return sluice_by(
      "sluice", port,
      config(port, workers == 1 ? "" : fmt::format("sluice:\n  workers: {}\n", workers)));
}

Subject Subjects::sluice_before_three() {
  if (!third_) third_.emplace();
  const auto port = test::free_port();
  return sluice_by("sluice, three servers", port,
                   config(port, "") + fmt::format("   - 127.0.0.1:{}:1 three\n", third_->port()));
}

Subject Subjects::sluice_before_cluster() {
  if (!cluster_) cluster_.emplace(test::ClusterRig::Options{.replicas = 0});
  const auto port = test::free_port();
  return sluice_by("sluice, a cluster", port,
                   fmt::format("pool:\n  listen: 127.0.0.1:{}\n  redis: true\n  timeout: 2000\n"
                               "  cluster: [127.0.0.1:{}]\n",
                               port, cluster_->node(0).port()));
}

Subject Subjects::sluice_by(std::string name, std::uint16_t port, const std::string& text) {
  const auto file = directory_.path() / fmt::format("sluice{}.yml", port);
  std::ofstream{file} << text;
  return start(std::move(name), port,
               {(build_tree_ / "sluice-proxy").string(), "-c", file.string(), "-s",
                std::to_string(test::free_port())});
}

Subject Subjects::nutcracker() {
  const auto port = test::free_port();
  const auto file = directory_.path() / "nutcracker.yml";
  std::ofstream{file} << config(port, "");
  return start("nutcracker", port,
               {"nutcracker", "-c", file.string(), "-a", "127.0.0.1", "-s",
                std::to_string(test::free_port())});
}

Subject Subjects::floor() {
  const auto port = test::free_port();
  return start("floor", port,
               {(build_tree_ / "bench/proxy/proxy_floor").string(), std::to_string(port),
                std::to_string(first_.port()), std::to_string(second_.port())});
}

}  // namespace sluice::bench
