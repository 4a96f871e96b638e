/// The engine at a port inside the test, on a free port of 127.0.0.1; gone with its owner.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "port/port.hpp"

namespace sluice::test {

class PortUnderTest {
 public:
  explicit PortUnderTest(port::PortSettings settings = {}, engine::EmbeddedOptions data = {})
      : opened_(engine::OpenedEngine::open(data)) {
    if (settings.listen.empty()) settings.listen.push_back({{.host = "127.0.0.1"}});
    port_.emplace(*opened_, std::move(settings));
  }

  std::uint16_t port() const { return port_->listens_at().front().endpoint.port; }
  std::string url() const { return fmt::format("redis://127.0.0.1:{}", port()); }
  port::Port& served() noexcept { return *port_; }
  std::size_t clients() { return port_->figures().clients; }
  /// Ends the port; the engine stays.
  void end() { port_.reset(); }

 private:
  std::unique_ptr<engine::OpenedEngine> opened_;
  std::optional<port::Port> port_;
};

}  // namespace sluice::test
