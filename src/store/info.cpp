#include "store/info.hpp"

#include "store/info.lua.hpp"

namespace sluice {

void add_info(Batch& batch, const Store& store, std::string_view key, std::string_view section) {
  if (store.is_sharded()) {
    batch.add(scripts::store_info, Words{&key, 1}, Words{&section, 1});
  } else {
    batch.add({"INFO", section});
  }
}

}  // namespace sluice
