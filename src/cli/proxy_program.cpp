#include "cli/proxy_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {

int exec_proxy(std::span<char* const> words) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto libexec = here.parent_path() / "libexec" / "sluice";
  int failure = ENOENT;
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

bool is_nutcracker(const char* program) noexcept {
  const std::string_view path{program ? program : ""};
  return path.substr(path.rfind('/') + 1) == "nutcracker";
}

}  // namespace sluice::cli
