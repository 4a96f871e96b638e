/// What operators see and do: /console/login, /console/logout, /v1/operate/...
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/journal.hpp"
#include "server/operate_call.hpp"
#include "server/operators.hpp"
#include "server/shop.hpp"
#include "server/snapshot.hpp"

namespace sluice::server {

/// Its calls are done by threads of its own, so that buyers do not hold operators up, nor they
/// them. Each change is in the journal before it begins.
///
/// REQUIRES: what it is made of lives longer, and it longer than the server of its routes.
class OperateApi {
 public:
  OperateApi(Store& store, Shop& shop, Operators& operators, EndedLogins& ended,
             Snapshots& snapshots, std::vector<OperateCall> calls);

  void add_routes(http::Routes& routes);
  /// Drops what has not begun.
  void stop() {
    threads_.stop();
    store_threads_.stop();
  }

 private:
  using Serve = void (OperateApi::*)(http::Request&&, http::Responder&&);
  http::Handler calls(Serve serve);
  void add_logins(http::Routes& routes);
  void add_views(http::Routes& routes);
  void add_call(http::Routes& routes, const OperateCall& call);
  OperateCall journal_call();

  void log_in(http::Request&& request, http::Responder&& respond);
  void log_out(http::Request&& request, http::Responder&& respond);
  void show_session(http::Request&& request, http::Responder&& respond);
  void show_state(http::Request&& request, http::Responder&& respond);
  void follow_state(http::Request&& request, http::Responder&& respond);

  void serve(const OperateCall& call, http::Request&& request, http::Responder&& respond);
  Expected<Asked, http::Response> asked_of(const OperateCall& call, http::Request&& request) const;
  http::Response act(const OperateCall& call, Asked& asked, const BlockingThreads::Orders& orders);
  void note(Operator who, std::string_view action);

  Shop& shop_;
  Operators& operators_;
  EndedLogins& ended_;
  Snapshots& snapshots_;
  Journal journal_;
  std::vector<OperateCall> calls_;
  std::atomic<std::uint64_t> notes_{0};
  BlockingThreads threads_;
  BlockingThreads store_threads_;  // of what asks the store alone: no database holds it up
};

}  // namespace sluice::server
