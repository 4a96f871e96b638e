/// Which server, and which history of its data, answers at an address.
#pragma once

#include <string>

#include "sluice/store.hpp"

namespace sluice::lock {

/// The run id and the replication id, as INFO tells them: another text after a restart or a
/// failover.
Task<std::string> server_identity(Store& store);

}  // namespace sluice::lock
