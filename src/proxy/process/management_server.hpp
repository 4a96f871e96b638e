/// One thread that serves statistics, metrics and administration, beside the data path.
///
/// A client delays another only by its conversation's own work, and costs little memory: its input
/// is bounded, the server reads no more until the client has taken its output, an idle client is
/// closed, and beyond most_clients the one that is idle longest.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/process/listening_socket.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::process {

/// What is said with one client. Runs on the server's thread: it must not wait.
class Conversation {
 public:
  enum class Next : std::uint8_t { listen, close };
  virtual ~Conversation() = default;

  /// Appends to `output` what the server says first.
  virtual Next greet(std::string& /*output*/) { return Next::listen; }
  /// Takes whole requests off the front of `input` and answers them. After a large answer it may
  /// leave some: it is called again when the answer is written. `close`: end after the answer.
  virtual Next talk(std::string& input, std::string& output) = 0;
};

/// A listening socket and what is said there.
struct Service {
  ListeningSocket listening;
  std::function<std::unique_ptr<Conversation>()> open_conversation;
  std::chrono::nanoseconds idle = std::chrono::seconds{10};
  std::size_t input_limit = std::size_t{64} << 10;
};

class ManagementServer {
 public:
  static constexpr std::size_t most_clients = 64;

  ManagementServer(std::vector<Service> services, Clock& clock);
  /// Ends every conversation; waits for the one that is at work.
  ~ManagementServer();

  /// A successor serves: accept no more here, and leave the files of unix sockets. Any thread.
  void hand_on() noexcept;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sluice::proxy::process
