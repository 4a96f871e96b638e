#include "cli/programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using Line = OtherProgram::Line;

constexpr OtherProgram programs[] = {
    {"proxy", "sluice-proxy", "sluice_proxy_program", Line::own_words,
     "Run the proxy in the place of twemproxy, look at its file, speak with it"},
    {"serve", "sluice-serve", "sluice_serve_program", Line::own_words_and_store,
     "Serve sales over HTTP, and bring their orders into a database"},
    {"engine", "sluice-engine", "sluice_engine_program", Line::own_words,
     "Serve a folder of the embedded engine at a port, or look after it"},
    {"demo", "sluice-demo", "sluice_demo_program", Line::as_it_stands,
     "Hold a flash sale, and prove that it went well"},
    {"bench", "sluice-bench", "sluice_bench_program", Line::as_it_stands,
     "Measure a store from this machine"},
    {"loadtest", "sluice-loadtest", "sluice_loadtest_program", Line::as_it_stands,
     "Let a crowd buy at a service over HTTP, measure it, and prove what it was told"},
    {"doctor", "sluice-doctor", "sluice_doctor_program", Line::as_it_stands,
     "Tell what is dangerous about a store"},
    {"explain", "sluice-doctor", "sluice_doctor_program", Line::as_it_stands,
     "Tell where a key lies, and why"}};

/// Programs that people start are installed in bin, the others in libexec/sluice.
struct Folders {
  fs::path here, libexec, bin;
};

Folders folders() {
  std::error_code ignored;
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  return {here, here.parent_path() / "libexec" / "sluice",
          here.parent_path().parent_path() / "bin"};
}

}  // namespace

std::span<const OtherProgram> other_programs() noexcept { return programs; }

const OtherProgram& program_of(std::string_view command) noexcept {
  return *std::ranges::find(programs, command, &OtherProgram::command);
}

std::vector<std::string> places_of(const OtherProgram& other) {
  const auto [here, libexec, bin] = folders();
  std::vector<std::string> places{here / other.file, libexec / other.file};
  if (here.filename() == "sluice" && here.parent_path().filename() == "libexec")
    places.push_back(bin / other.file);
  places.emplace_back(other.file);
  return places;
}

std::string not_found_text(const OtherProgram& other) {
  const auto [here, libexec, bin] = folders();
  return fmt::format(
      "'{0}' is a program of its own, {1}, and it is neither in {2} nor in {3} nor on PATH: "
      "install it, or build it with `./run {0}` or `cmake --build BUILD --target {4}`",
      other.command, other.file, here.string(), libexec.string(), other.target);
}

int exec_program(const OtherProgram& other, std::span<char* const> words) {
  int failure = ENOENT;
  restore_signals();
  for (const auto& place : places_of(other)) {
    ::execvp(place.c_str(), words.data());
    if (errno != ENOENT) failure = errno;
  }
  if (failure == ENOENT)
    complain_line(not_found_text(other));
  else
    complain("{} cannot be run: {}", other.file, std::strerror(failure));
  return exit_unavailable;
}

}  // namespace sluice::cli
