/// INFO of the server that has a key: where keys are sharded each slot has its own.
#pragma once

#include <string_view>

#include "sluice/store.hpp"

namespace sluice {

/// Adds the question. `key` counts where the Store is sharded.
void add_info(Batch& batch, const Store& store, std::string_view key, std::string_view section);

}  // namespace sluice
