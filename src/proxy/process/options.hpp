/// The command line of nutcracker: the same flags, texts and exit codes.
///
/// Other than nutcracker's: the statistics are served on 127.0.0.1 unless -a says otherwise
/// (nutcracker: 0.0.0.0), since they tell the names of servers to every client; -m is checked
/// and has no further effect.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy::process {

struct Options {
  bool test_conf = false;
  bool daemonize = false;
  int log_level = 5;
  std::string log_file;  ///< empty: stderr
  std::string conf_file = "conf/nutcracker.yml";
  std::uint16_t stats_port = 22222;
  std::string stats_addr = "127.0.0.1";
  std::chrono::milliseconds stats_interval{30000};
  std::string pid_file;  ///< empty: none
  std::size_t mbuf_size = 16384;
};

/// What the command line comes to: options to run with, or what to print on stderr and the code to
/// exit with.
struct CommandLine {
  Options options;
  std::optional<int> exit_code;
  std::string text;
};

/// Which nutcracker this stands in for: its version is in --version and in the statistics.
inline constexpr std::string_view nutcracker_version = "0.5.0";

/// `version` is our own. Threads: none other may read a command line meanwhile (getopt).
CommandLine parse_command_line(int argc, const char* const* argv, std::string_view version);

std::string version_text(std::string_view version);
std::string usage_text();
/// -D; generated from counters.def: twemproxy's fields in its format, then ours.
std::string stats_description();
/// The line of -t.
std::string test_conf_text(const std::string& file, bool ok);

}  // namespace sluice::proxy::process
