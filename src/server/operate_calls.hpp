/// The tables of what operators may ask, by subject.
#pragma once

#include <vector>

#include "server/operate_call.hpp"
#include "server/proxies.hpp"
#include "server/queue_api.hpp"
#include "sluice/store.hpp"

namespace sluice::server {

/// REQUIRES: what they are made of lives longer.
std::vector<OperateCall> sale_calls(Store& store);
std::vector<OperateCall> order_calls();
std::vector<OperateCall> money_calls(Store& store);
std::vector<OperateCall> room_calls(const QueueApi& queue);
std::vector<OperateCall> store_calls(Store& store);

/// All of them.
std::vector<OperateCall> operate_calls(Store& store, const QueueApi& queue, Proxies& proxies);

}  // namespace sluice::server
