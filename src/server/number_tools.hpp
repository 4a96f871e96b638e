/// Numbers and ids over HTTP, those of Series and IdWorker.
///
///   POST /v1/series/{name}/next   the next numbers; the Idempotency-Key is the wish
///   GET  /v1/series/{name}        the latest one
///   POST /v1/ids/{name}/next      the next ids; a repeat takes others
#pragma once

#include <memory>
#include <string>

#include "http/routes.hpp"
#include "server/kept.hpp"
#include "server/tools_door.hpp"
#include "sluice/id.hpp"
#include "sluice/number.hpp"

namespace sluice::server {

/// Threads: any. REQUIRES: store and door live longer, and it longer than the server of its routes.
class NumberTools {
 public:
  NumberTools(Store& store, const ToolsDoor& door) : store_(store), door_(door) {}

  void add_routes(http::Routes& routes);

 private:
  static constexpr std::size_t most_kept = 1000;

  void next_numbers(http::Request&& request, http::Responder&& respond);
  void show_series(http::Request&& request, http::Responder&& respond);
  void next_ids(http::Request&& request, http::Responder&& respond);

  Store& store_;
  const ToolsDoor& door_;
  Kept<std::string, Series> series_{most_kept};
  Kept<std::string, IdWorker> ids_{most_kept};
};

}  // namespace sluice::server
