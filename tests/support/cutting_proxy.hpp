/// A TCP proxy in front of any server, which cuts connections at a word of the client: before the
/// server has it, or after the server has answered and before the client hears of it.
///
///     CuttingProxy proxy{server.port()};
///     proxy.cut_at("COMMIT", CuttingProxy::Cut::after);
///
/// Threads: any. It has one thread of its own, which ends with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::test {

class CuttingProxy {
 public:
  enum class Cut : std::uint8_t { before, after };

  explicit CuttingProxy(std::uint16_t server);
  ~CuttingProxy();

  std::uint16_t port() const noexcept { return port_; }
  /// At the next message of a client that has this word in it, once.
  void cut_at(std::string word, Cut cut);
  /// The same: does something before the server has the message.
  void do_at(std::string word, std::function<void()> deed);
  int cuts() const noexcept { return cuts_; }

 private:
  struct Line {
    Descriptor client;
    Descriptor server;
    bool waits = false;  ///< for the answer that the client will not hear
  };

  void run(std::stop_token stop);
  void accept_one();
  bool from_client(Line& line);
  bool from_server(Line& line);

  const std::uint16_t server_;
  Descriptor listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::string word_;
  Cut cut_ = Cut::before;
  std::function<void()> deed_;  // instead of a cut
  std::atomic<int> cuts_ = 0;
  std::vector<Line> lines_;
  std::jthread thread_;
};

}  // namespace sluice::test
