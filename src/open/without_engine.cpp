#include "open/embedded.hpp"

namespace sluice {

std::unique_ptr<Store> open_embedded(const Url&, const OpenOptions&) {
  refuse(
      "to open embedded: link sluice::sluice; this program is linked without the embedded engine "
      "(sluice::client)");
}

}  // namespace sluice
