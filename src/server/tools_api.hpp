/// Locks, numbers, ids and Bloom filters over HTTP, for programs that have no library of ours.
#pragma once

#include "server/bloom_tools.hpp"
#include "server/lock_tools.hpp"
#include "server/number_tools.hpp"
#include "server/tools_door.hpp"

namespace sluice::server {

/// Threads: any. REQUIRES: what it is made of lives longer, and it longer than the server of its
/// routes.
class ToolsApi {
 public:
  /// `has_local`: programs of this machine need no key.
  ToolsApi(Store& store, const ShopKeys& keys, bool has_local)
      : door_(keys, has_local),
        locks_(store, door_),
        numbers_(store, door_),
        filters_(store, door_) {}

  void add_routes(http::Routes& routes) {
    locks_.add_routes(routes);
    numbers_.add_routes(routes);
    filters_.add_routes(routes);
  }

 private:
  const ToolsDoor door_;
  LockTools locks_;
  NumberTools numbers_;
  BloomTools filters_;
};

}  // namespace sluice::server
