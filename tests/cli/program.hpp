/// The program as a user runs it: what it prints, and what it exits with.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

struct Ran {
  int status;
  std::string output;  ///< stdout and stderr

  std::string last_line() const {
    const auto text = output.substr(0, output.find_last_not_of('\n') + 1);
    const auto start = text.rfind('\n');
    return start == std::string::npos ? text : text.substr(start + 1);
  }
  nlohmann::json json() const { return nlohmann::json::parse(last_line()); }
  bool says(std::string_view text) const { return output.find(text) != std::string::npos; }
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Program : public testing::Test {
 protected:
  Process start(std::vector<std::string> arguments, const std::string& output) {
    arguments.insert(arguments.begin(), test::built_path("sluice"));
    return Process{arguments,
                   {.directory = folder_.path(), .environment = {}, .output = folder_ / output}};
  }
  /// For a machine on which a server may stand still for a while.
  std::string patient_url() const { return server_.url() + "?timeout=30s&connect_timeout=30s"; }
  Process start_on_redis(std::vector<std::string> arguments, const std::string& output) {
    arguments.insert(arguments.begin(), {"--store", patient_url()});
    return start(std::move(arguments), output);
  }
  Ran run(const std::vector<std::string>& arguments) {
    const std::string name = "output" + std::to_string(++runs_);
    const int status = start(arguments, name).wait();
    return {status, read_file(folder_ / name)};
  }
  Ran run_on_redis(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--store", patient_url()});
    Ran ran = run(arguments);
    // A short --wait bounds connecting, too, which may take a slow machine longer.
    for (int left = 5; left > 0 && ran.says("not connected within"); --left) ran = run(arguments);
    return ran;
  }
  /// Until `holds`, asked a hundred times a second, so that no test sleeps longer than it must.
  template <class Condition>
  void wait_until(Condition holds) {
    PlainClient side{server_.port()};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!holds(side) && std::chrono::steady_clock::now() < patience)
      side.command({"BLPOP", "nothing-is-here", "0.01"});
    EXPECT_TRUE(holds(side)) << "in half a minute";
  }
  void wait_for_key(const std::string& key) {
    wait_until([&](PlainClient& side) { return side.command({"EXISTS", key}).as_integer() == 1; });
  }

  TempDir folder_;
  RedisServer server_;
  int runs_ = 0;
};

}  // namespace sluice::test
