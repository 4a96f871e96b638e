/// Bloom filters over HTTP, those of SharedBloomFilter with texts as keys.
///
///   PUT  /v1/bloom/{name}            makes it, or joins it
///   POST /v1/bloom/{name}/add        adds keys
///   POST /v1/bloom/{name}/contains   asks for keys
///   GET  /v1/bloom/{name}            how full it is
#pragma once

#include <memory>
#include <string>

#include "http/routes.hpp"
#include "server/kept.hpp"
#include "server/tools_door.hpp"
#include "sluice/shared_bloom_filter.hpp"

namespace sluice::server {

/// Threads: any. REQUIRES: store and door live longer, and it longer than the server of its routes.
class BloomTools {
 public:
  BloomTools(Store& store, const ToolsDoor& door) : store_(store), door_(door) {}

  void add_routes(http::Routes& routes);

 private:
  static constexpr std::size_t most_kept = 1000;

  std::shared_ptr<SharedBloomFilter> filter_of(const std::string& name);
  void create(http::Request&& request, http::Responder&& respond);
  void add(http::Request&& request, http::Responder&& respond);
  void contains(http::Request&& request, http::Responder&& respond);
  void show(http::Request&& request, http::Responder&& respond);

  Store& store_;
  const ToolsDoor& door_;
  Kept<std::string, SharedBloomFilter> filters_{most_kept};
};

}  // namespace sluice::server
