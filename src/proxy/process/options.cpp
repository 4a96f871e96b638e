#include "proxy/process/options.hpp"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/integer.hpp"
#include "proxy/watch/counters.hpp"

namespace sluice::proxy::process {
namespace {

constexpr int most_level = 11;
constexpr std::size_t least_mbuf = 512;
constexpr std::size_t most_mbuf = std::size_t{16} << 20;

/// What a line cannot be used for; the sentence, to be followed by the usage.
struct Refused {
  std::string why;
};

/// Digits alone, as nutcracker reads numbers; empty: it is none.
std::optional<int> number(std::string_view text) {
  return is_digits(text) ? parse_integer<int>(text) : std::nullopt;
}

int number_of(char flag, std::string_view text) {
  const auto value = number(text);
  if (!value) throw Refused{fmt::format("option -{} requires a number", flag)};
  return *value;
}

std::uint16_t port_of(std::string_view text) {
  const int value = number_of('s', text);
  if (value < 1 || value > 65535)
    throw Refused{fmt::format("option -s value {} is not a valid port", value)};
  return static_cast<std::uint16_t>(value);
}

std::size_t mbuf_of(std::string_view text) {
  const auto value = number(text);
  if (!value || *value == 0) throw Refused{"option -m requires a non-zero number"};
  const auto size = static_cast<std::size_t>(*value);
  if (size < least_mbuf || size > most_mbuf)
    throw Refused{
        fmt::format("mbuf chunk size must be between {} and {} bytes", least_mbuf, most_mbuf)};
  return size;
}

/// What stands on the line beside the options to run with.
struct Asked {
  bool help = false, version = false, describe = false;
};

struct Flag {
  char letter;
  const char* name;
  const char* needs;  ///< null: it takes no value
  void (*set)(Options&, Asked&, const char* value);
};

constexpr Flag flags[] = {
    {'h', "help", nullptr,
     [](Options&, Asked& asked, const char*) { asked.help = asked.version = true; }},
    {'V', "version", nullptr, [](Options&, Asked& asked, const char*) { asked.version = true; }},
    {'t', "test-conf", nullptr, [](Options& o, Asked&, const char*) { o.test_conf = true; }},
    {'d', "daemonize", nullptr, [](Options& o, Asked&, const char*) { o.daemonize = true; }},
    {'D', "describe-stats", nullptr,
     [](Options&, Asked& asked, const char*) { asked.describe = asked.version = true; }},
    {'v', "verbose", "a number",
     [](Options& o, Asked&, const char* v) {
       o.log_level = std::min(number_of('v', v), most_level);
     }},
    {'o', "output", "a file name", [](Options& o, Asked&, const char* v) { o.log_file = v; }},
    {'c', "conf-file", "a file name", [](Options& o, Asked&, const char* v) { o.conf_file = v; }},
    {'s', "stats-port", "a number",
     [](Options& o, Asked&, const char* v) { o.stats_port = port_of(v); }},
    {'i', "stats-interval", "a number",
     [](Options& o, Asked&, const char* v) {
       o.stats_interval = std::chrono::milliseconds{number_of('i', v)};
     }},
    {'a', "stats-addr", "a string", [](Options& o, Asked&, const char* v) { o.stats_addr = v; }},
    {'p', "pid-file", "a file name", [](Options& o, Asked&, const char* v) { o.pid_file = v; }},
    {'m', "mbuf-size", "a number",
     [](Options& o, Asked&, const char* v) { o.mbuf_size = mbuf_of(v); }},
};

const Flag* flag_of(int letter) {
  const auto* const found =
      std::ranges::find(flags, letter, [](const Flag& flag) { return int{flag.letter}; });
  return found == std::end(flags) ? nullptr : found;
}

Refused refusal_of(int letter) {
  const Flag* const flag = flag_of(letter);
  if (flag && flag->needs)
    return {fmt::format("option -{} requires {}", flag->letter, flag->needs)};
  return {fmt::format("invalid option -- '{}'", static_cast<char>(letter))};  // '\0' for a long one
}

void read_flags(int argc, const char* const* argv, Options& options, Asked& asked) {
  std::string letters;
  std::vector<option> names;
  for (const Flag& flag : flags) {
    letters += flag.letter;
    if (flag.needs) letters += ':';
    names.push_back(
        {flag.name, flag.needs ? required_argument : no_argument, nullptr, flag.letter});
  }
  names.push_back({});
  std::vector<char*> words;  // getopt moves words that are no options to the end
  for (int i = 0; i < argc; ++i)
    words.push_back(const_cast<char*>(argv[i]));  // NOLINT: it moves, it does not write
  words.push_back(nullptr);
  ::opterr = 0;
  ::optind = 0;
  for (int letter = 0; (letter = ::getopt_long(argc, words.data(), letters.c_str(), names.data(),
                                               nullptr)) != -1;) {
    if (letter == '?') throw refusal_of(::optopt);
    flag_of(letter)->set(options, asked, ::optarg);
  }
}

void describe(std::string& text, std::string_view title, auto fields, bool of_twemproxy) {
  text += fmt::format("{}:\n", title);
  for (const auto& field : fields)
    if (field.of_twemproxy == of_twemproxy)
      text += fmt::format("  {:<20}\"{}\"\n", field.name, field.help);
}

}  // namespace

std::string version_text(std::string_view version) {
  return fmt::format("This is nutcracker-{} as sluice-{}\nasync event backend: epoll\n\n",
                     nutcracker_version, version);
}

std::string usage_text() {
  return "Usage: nutcracker [-?hVdDt] [-v verbosity level] [-o output file]\n"
         "                  [-c conf file] [-s stats port] [-a stats addr]\n"
         "                  [-i stats interval] [-p pid file] [-m mbuf size]\n"
         "\n"
         "Options:\n"
         "  -h, --help             : this help\n"
         "  -V, --version          : show version and exit\n"
         "  -t, --test-conf        : test configuration for syntax errors and exit\n"
         "  -d, --daemonize        : run as a daemon\n"
         "  -D, --describe-stats   : print stats description and exit\n"
         "  -v, --verbose=N        : set logging level (default: 5, min: 0, max: 11)\n"
         "  -o, --output=S         : set logging file (default: stderr)\n"
         "  -c, --conf-file=S      : set configuration file (default: conf/nutcracker.yml)\n"
         "  -s, --stats-port=N     : set stats monitoring port (default: 22222)\n"
         "  -a, --stats-addr=S     : set stats monitoring ip (default: 127.0.0.1)\n"
         "  -i, --stats-interval=N : set stats aggregation interval in msec (default: 30000 msec)\n"
         "  -p, --pid-file=S       : set pid file (default: off)\n"
         "  -m, --mbuf-size=N      : set size of mbuf chunk in bytes (default: 16384 bytes)\n"
         "\n";
}

std::string stats_description() {
  std::string text;
  describe(text, "pool stats", watch::pool_fields, true);
  text += '\n';
  describe(text, "server stats", watch::server_fields, true);
  text += "\nBeyond nutcracker's, in the metrics and for `sluice proxy stats`:\n\n";
  describe(text, "pool stats", watch::pool_fields, false);
  text += '\n';
  describe(text, "server stats", watch::server_fields, false);
  return text;
}

std::string test_conf_text(const std::string& file, bool ok) {
  return fmt::format("nutcracker: configuration file '{}' syntax is {}\n", file,
                     ok ? "ok" : "invalid");
}

CommandLine parse_command_line(int argc, const char* const* argv, std::string_view version) {
  CommandLine line;
  Asked asked;
  try {
    read_flags(argc, argv, line.options, asked);
  } catch (const Refused& refused) {
    return {line.options, 1, fmt::format("nutcracker: {}\n{}", refused.why, usage_text())};
  }
  if (!asked.version) return line;
  line.exit_code = 0;
  line.text = version_text(version);
  if (asked.help) line.text += usage_text();
  if (asked.describe) line.text += stats_description();
  return line;
}

}  // namespace sluice::proxy::process
