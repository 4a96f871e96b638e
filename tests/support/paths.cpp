#include "support/paths.hpp"

namespace sluice::test {
namespace {

std::string below(std::string root, std::string_view path) {
  return path.empty() ? root : std::move(root) + '/' + std::string{path};
}

}  // namespace

std::string source_path(std::string_view path) { return below(SLUICE_SOURCE_DIR, path); }

std::string built_path(std::string_view path) { return below(SLUICE_BINARY_DIR, path); }

}  // namespace sluice::test
