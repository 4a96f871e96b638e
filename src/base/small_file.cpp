#include "base/small_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sluice/error.hpp"

namespace sluice {

std::string read_small_file(const std::string& path, std::size_t most) {
  const auto refuse = [&](const std::string& why) {
    throw Error{Errc::bad_argument, fmt::format("{}: {}", path, why)};
  };
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure))  // a pipe would keep us waiting
    refuse(failure ? failure.message() : "it is no file");
  std::ifstream file{path, std::ios::binary};
  if (!file) refuse(std::strerror(errno));
  std::string bytes(most + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) refuse(std::strerror(errno));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() > most) refuse(fmt::format("it has more than {} bytes", most));
  return bytes;
}

}  // namespace sluice
