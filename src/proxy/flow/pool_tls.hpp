/// The certificates of a pool, read once for all workers.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "net/tls.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy {

struct PoolTls {
  std::optional<net::TlsContext> listen;  ///< none: clients speak plainly
  std::optional<net::TlsContext> server;  ///< none: so do we with servers

  /// Reads the files. Throws Error{bad_argument} that names the pool, the file and the reason.
  static std::shared_ptr<const PoolTls> read(const PoolSettings& settings);
};

}  // namespace sluice::proxy
