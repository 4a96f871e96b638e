/// A store in a folder: what it said once it still knows after a restart.
///   embedded_restart [FOLDER]     default: a new folder below the one for temporary files
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sluice/number.hpp>
#include <sluice/open.hpp>

namespace fs = std::filesystem;

int main(int count, char** words) {
  const fs::path folder = count > 1
                              ? fs::path{words[1]}
                              : fs::temp_directory_path() / fmt::format("sluice-{}", ::getpid());
  const auto url = "embedded:" + folder.string();

  for (int start = 1; start <= 2; ++start) {
    const auto store = sluice::open(url);
    sluice::Series tickets{*store, "T", {.zone = "UTC"}};
    if (const auto number = tickets.next().get())  // on disk before it is returned
      fmt::print("start {}: {}\n", start, number->text);

    try {
      sluice::open(url);
    } catch (const sluice::Error& error) {  // Errc::in_use: one Store has a folder at a time
      fmt::print("{}\n", error.message());
    }
  }
  if (count == 1) fs::remove_all(folder);
}
