/// A connection of which its balancer has still to say for whom it is: by the PROXY protocol,
/// before TLS and before HTTP.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "http/proxy_protocol.hpp"
#include "loop/loop.hpp"
#include "net/socket.hpp"

namespace sluice::http {

class Worker;

class Introduction final : public loop::EventHandler {
 public:
  Introduction(Worker& worker, net::Socket socket, std::string balancer, SteadyTime now)
      : worker_(worker), socket_(std::move(socket)), balancer_(std::move(balancer)), since_(now) {}

  /// Reads no byte that lies behind the header.
  void ready(Readiness readiness) override;

 private:
  friend class Worker;

  Worker& worker_;
  net::Socket socket_;
  const std::string balancer_;
  const SteadyTime since_;
  ProxyHeader header_;
  std::list<std::unique_ptr<Introduction>>::iterator in_list_;  // the worker's
};

}  // namespace sluice::http
