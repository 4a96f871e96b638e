/// Opens the store that a URL names, or says why it cannot be opened.
///   open_store [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/open.hpp>
#include <sluice/store.hpp>

using namespace std::chrono_literals;

int main(int count, char** words) {
  try {
    // What the program sets itself wins over the same setting of the URL.
    const auto store =
        sluice::open(count > 1 ? words[1] : "embedded:", {.name = "shop", .command_timeout = 2s});
    fmt::print("{} is open\n", store->describe());  // never shows a password
  } catch (const sluice::Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    return error.errc() == sluice::Errc::bad_argument ? 2 : 1;
  }
}
