/// The program `sluice`: every noun of the library from the command line.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {

std::string store_url(const Globals& globals) {
  if (!globals.store.empty()) return globals.store;
  if (const char* const set = std::getenv("SLUICE_STORE"); set && *set) return set;
  return "redis://127.0.0.1:6379";
}

std::unique_ptr<Store> open_store(const Globals& globals, const OpenOptions& how) {
  try {
    return open(store_url(globals), how);
  } catch (const Error& wrong) {
    if (wrong.errc() != Errc::bad_argument) throw;
    throw Error{Errc::bad_argument,
                fmt::format("{}: {}", globals.store.empty() ? "$SLUICE_STORE" : "--store",
                            wrong.message())};
  }
}

void warn_if_in_memory(const Globals& globals, std::string_view what) {
  const std::string url = store_url(globals);
  if (url == "embedded:" || url.starts_with("embedded:?"))
    complain(
        "warning: 'embedded:' is the memory of this process: no other process shares {}, and it "
        "ends with this command; use 'embedded:/FOLDER' or a server",
        what);
}

namespace {

void log_to_stderr(LogLevel level, std::string_view message) {
  if (level >= LogLevel::warning) complain_line(message);
}

constexpr const char* examples =
    R"(Examples:
  sluice lock deploy --wait 5s -- make release
  sluice semaphore encoders --permits 4 -- ffmpeg in.mov out.mp4
  sluice --store embedded:/var/lib/app number INV --zone Europe/Berlin
  sluice locks --graph
Times are written 250ms, 5s, 2m, 1h, 1d; a bare number is seconds.)";

Command table(Globals& globals) {
  Command root{
      .name = "sluice",
      .summary =
          "Locks, numbers, ids, Bloom filters, flash sales and waiting rooms for programs that run "
          "as many "
          "instances",
      .options = {{"--store", "URL",
                   "redis://[user:password@]host:port[/db], rediss:// (TLS), redis+unix:///path, "
                   "redis+sentinel://h1,h2,h3/master, redis+cluster://h1,h2,h3, "
                   "embedded: "
                   "(memory) "
                   "or embedded:/folder; without it $SLUICE_STORE, else redis://127.0.0.1:6379",
                   into(globals.store)},
                  {"--json", "", "One JSON object on the last line, for programs",
                   into(globals.json)},
                  {"-v, --verbose", "", "Say what is waited for, also where stderr is no terminal",
                   into(globals.verbose)}},
      .commands = {lock_command(globals), semaphore_command(globals), latch_command(globals),
                   locks_command(globals), number_command(globals), id_command(globals),
                   bloom_command(globals), sale_command(globals), room_command(globals)},
      .details = examples,
  };
  root.commands.push_back(
      {.name = "proxy",
       .summary = "Run the proxy in the place of twemproxy, look at its file, speak with it",
       .details = "'sluice proxy --help' lists its commands.",
       .action = [] { return exit_ok; },  // words_for_proxy() has seen it before
       .is_a_program = true});
  for (auto* const make :
       {demo_command, demo_instance_command, bench_command, doctor_command, explain_command})
    root.commands.push_back(make(globals));
  return root;
}

/// Becomes the program sluice-proxy, which lies beside this one, in ../libexec/sluice, or on PATH.
/// Returns only when it cannot be run: the exit code, after a line on stderr that says what to do.
/// REQUIRES: a null pointer stands behind `words`, as behind argv.
int exec_proxy(std::span<char* const> words) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto libexec = here.parent_path() / "libexec" / "sluice";
  int failure = ENOENT;
  restore_signals();
  for (const auto& folder : {here, libexec, fs::path{}}) {
    const auto program = folder / "sluice-proxy";  // without a folder: on PATH
    ::execvp(program.c_str(), words.data());
    if (errno != ENOENT) failure = errno;
  }
  if (failure == ENOENT)
    complain(
        "the proxy is a program of its own, sluice-proxy, and it is neither in {} nor in {} nor on "
        "PATH: install it, or build it with `./run proxy` or `cmake --build BUILD --target "
        "sluice_proxy_program`",
        here.string(), libexec.string());
  else
    complain("sluice-proxy cannot be run: {}", std::strerror(failure));
  return exit_unavailable;
}

/// Whether this program stands in for nutcracker: a link of that name.
bool is_nutcracker(const char* program) noexcept {
  const std::string_view path{program ? program : ""};
  return path.substr(path.rfind('/') + 1) == "nutcracker";
}

/// The line of sluice-proxy, if that is meant: `sluice [--json] [help] proxy WORDS...`, or a
/// program called nutcracker. Empty: another command is meant.
std::vector<char*> words_for_proxy(std::span<char* const> line) {
  if (is_nutcracker(line.front())) return {line.begin(), line.end()};
  std::vector<char*> words{line.front(), nullptr};
  for (std::size_t i = 1; i < line.size(); ++i) {
    const std::string_view word{line[i]};
    if (word == "proxy" && (i + 1 < line.size() || std::string_view{line[1]} != "__complete")) {
      words[1] = line[i];
      words.insert(words.end(), line.begin() + static_cast<std::ptrdiff_t>(i) + 1, line.end());
      return words;
    }
    if (word == "--json" || word == "help" || word == "--man" || word == "__complete")
      words.push_back(line[i]);
    else if (word == "--store")
      ++i;
    else if (!word.starts_with("--store=") && word != "-v" && word != "--verbose")
      break;
  }
  return {};
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  prepare_streams();
  sluice::set_log_sink(log_to_stderr);
  try {
    if (auto words = words_for_proxy({argv, argv + argc}); !words.empty()) {
      words.push_back(nullptr);
      return exec_proxy({words.data(), words.size() - 1});
    }
    Globals globals;
    return run_program({table(globals), SLUICE_VERSION}, {argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    return report(failure);
  }
}
