#include "support/temp_dir.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

namespace sluice::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error{errno, std::generic_category(), "mkdtemp " + name};
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a destructor has nobody to tell; the folder lies in /tmp
  std::filesystem::remove_all(path_, ignored);
}

void TempDir::clear() {
  for (const auto& entry : std::filesystem::directory_iterator{path_})
    std::filesystem::remove_all(entry.path());
}

}  // namespace sluice::test
