/// The one server of all keys of a request that goes over a connection of its own.
#pragma once

#include "proxy/flow/client.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

/// `given`: which it has to be, if that is settled. Null: there is none, and the client was told why.
/// REQUIRES: the request has keys.
Server* one_home(Client& client, Words words, const Plan& plan, Server* given = nullptr);

}  // namespace sluice::proxy
