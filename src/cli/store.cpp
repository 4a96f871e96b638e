#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {

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

}  // namespace sluice::cli
