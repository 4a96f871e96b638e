/// A shared filter in a file, and back.
#pragma once

#include <memory>
#include <string>

#include "bloom/shared/shared_filter.hpp"

namespace sluice::bloom {

Task<void> save(std::shared_ptr<SharedFilter> filter, std::string path);
Task<void> load(std::shared_ptr<SharedFilter> filter, std::string path);

}  // namespace sluice::bloom
