/// The program sluice-serve as a process.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/comes_true.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream{file};
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// One process of the program, with addresses of its own and a greeting in JSON.
class Served {
 public:
  Served(const TempDir& folder, int number, std::vector<std::string> options)
      : output_(folder / fmt::format("output{}", number)) {
    std::vector<std::string> line{built_path("sluice-serve"),
                                  "--listen",
                                  "127.0.0.1:0",
                                  "--health",
                                  "127.0.0.1:0",
                                  "--notice",
                                  "0s",
                                  "--json"};
    line.insert(line.end(), options.begin(), options.end());
    process_.emplace(line, ProcessOptions{.directory = folder.path(), .output = output_});
  }

  /// False: it has ended instead.
  bool begins() {
    EXPECT_TRUE(comes_true(
        [&] { return !process_->running() || text_of(output_).find("\"port\":") != npos; }));
    const auto text = text_of(output_);
    const auto at = text.find("\"port\":");
    if (at == npos) return false;
    port_ = static_cast<std::uint16_t>(std::stoi(text.substr(at + 7)));
    const auto health = text.find("\"health_port\":");
    health_port_ = static_cast<std::uint16_t>(std::stoi(text.substr(health + 14)));
    return true;
  }
  std::uint16_t port() const { return port_; }
  std::uint16_t health_port() const { return health_port_; }
  std::string output() const { return text_of(output_); }
  Process& process() { return *process_; }

 private:
  static constexpr auto npos = std::string::npos;
  std::filesystem::path output_;
  std::optional<Process> process_;
  std::uint16_t port_ = 0;
  std::uint16_t health_port_ = 0;
};

}  // namespace sluice::test
