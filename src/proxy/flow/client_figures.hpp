/// What can be told of a client that is connected.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::proxy {

struct ClientFigures {
  std::uint64_t id = 0;  ///< as CLIENT ID says it
  std::string pool;
  std::string address;  ///< where it comes from; "unix" for a unix socket
  std::chrono::milliseconds idle{0};
  std::size_t under_way = 0;  ///< requests whose replies it has not been sent
  std::size_t bytes = 0;      ///< kept for it
};

}  // namespace sluice::proxy
