/// The servers of a pool that are asked where its nodes or masters are.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/read.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy::flow {

/// Of addresses as the file has them.
inline std::vector<topology::Endpoint> seeds_of(const std::vector<std::string>& addresses) {
  std::vector<topology::Endpoint> all;
  for (const auto& text : addresses) {
    const auto endpoint = config::parse_address(text);
    all.push_back({endpoint.host, endpoint.port});
  }
  return all;
}

}  // namespace sluice::proxy::flow
