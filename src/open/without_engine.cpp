#include "open/embedded.hpp"

namespace sluice {

std::unique_ptr<Store> open_embedded(const Url&, const OpenOptions&) {
  refuse(
      "this program is linked without the embedded engine (sluice::client); "
      "link sluice::sluice to open embedded:");
}

}  // namespace sluice
