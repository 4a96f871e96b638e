/// The program `sluice`: every noun of the library from the command line.
#include <unistd.h>

#include <algorithm>
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

/// Commands that are programs of their own, so that this one does without their libraries.
struct OtherProgram {
  std::string_view command;
  const char* file;
  std::string_view summary;
  std::string_view details;
  std::string_view target;  ///< of the build
  bool takes_store;         ///< --store and -v before the command are for it, too
};

constexpr OtherProgram programs[] = {
    {"proxy", "sluice-proxy",
     "Run the proxy in the place of twemproxy, look at its file, speak with it",
     "'sluice proxy --help' lists its commands.", "sluice_proxy_program", false},
    {"serve", "sluice-serve", "Serve sales over HTTP, and bring their orders into a database",
     "'sluice serve --help' lists its options.", "sluice_serve_program", true}};

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
  for (const auto& program : programs)
    root.commands.push_back(
        {.name = std::string{program.command},
         .summary = std::string{program.summary},
         .details = std::string{program.details},
         .action = [] { return exit_ok; },  // other_program() has seen it before
         .is_a_program = true});
  for (auto* const make : {demo_command, demo_instance_command, bench_command, load_command,
                           doctor_command, explain_command})
    root.commands.push_back(make(globals));
  return root;
}

/// Becomes that program, which lies beside this one, in ../libexec/sluice, or on PATH. Returns only
/// when it cannot be run: the exit code, after a line on stderr that says what to do.
/// REQUIRES: a null pointer stands behind `words`, as behind argv.
int exec_program(const OtherProgram& other, std::span<char* const> words) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto libexec = here.parent_path() / "libexec" / "sluice";
  int failure = ENOENT;
  restore_signals();
  for (const auto& folder : {here, libexec, fs::path{}}) {
    const auto program = folder / other.file;  // without a folder: on PATH
    ::execvp(program.c_str(), words.data());
    if (errno != ENOENT) failure = errno;
  }
  if (failure == ENOENT)
    complain(
        "'{0}' is a program of its own, {1}, and it is neither in {2} nor in {3} nor on PATH: "
        "install it, or build it with `./run {0}` or `cmake --build BUILD --target {4}`",
        other.command, other.file, here.string(), libexec.string(), other.target);
  else
    complain("{} cannot be run: {}", other.file, std::strerror(failure));
  return exit_unavailable;
}

/// Whether this program stands in for nutcracker: a link of that name.
bool is_nutcracker(const char* program) noexcept {
  const std::string_view path{program ? program : ""};
  return path.substr(path.rfind('/') + 1) == "nutcracker";
}

/// A program and its line.
struct OtherLine {
  const OtherProgram* program = nullptr;  ///< null: another command is meant
  std::vector<char*> words;
};

/// `sluice [--json] [help] proxy WORDS...`, or a program called nutcracker.
OtherLine other_program(std::span<char* const> line) {
  if (is_nutcracker(line.front())) return {&programs[0], {line.begin(), line.end()}};
  std::vector<char*> words{line.front(), nullptr};
  std::vector<char*> stores;  // --store URL, for those that take it
  for (std::size_t i = 1; i < line.size(); ++i) {
    const std::string_view word{line[i]};
    const auto* const other = std::ranges::find(programs, word, &OtherProgram::command);
    if (other != std::end(programs) &&
        (i + 1 < line.size() || std::string_view{line[1]} != "__complete")) {
      words[1] = line[i];
      if (other->takes_store) words.insert(words.end(), stores.begin(), stores.end());
      words.insert(words.end(), line.begin() + static_cast<std::ptrdiff_t>(i) + 1, line.end());
      return {other, std::move(words)};
    }
    if (word == "--json" || word == "help" || word == "--man" || word == "__complete")
      words.push_back(line[i]);
    else if (word == "--store" && i + 1 < line.size())
      stores.insert(stores.end(), {line[i], line[i + 1]}), ++i;
    else if (word.starts_with("--store="))
      stores.push_back(line[i]);
    else if (word != "-v" && word != "--verbose")
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
    if (auto other = other_program({argv, argv + argc}); other.program) {
      other.words.push_back(nullptr);
      return exec_program(*other.program, {other.words.data(), other.words.size() - 1});
    }
    Globals globals;
    return run_program({table(globals), SLUICE_VERSION}, {argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    return report(failure);
  }
}
