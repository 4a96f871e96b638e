/// One thread that serves all that is beside the data path: statistics, metrics, administration.
///
/// None of its clients can hold up another for longer than a session's own work, nor make it keep
/// much: a client's input is bounded, it is not read from while it has not taken its output, it is
/// closed when it is idle for too long, and when there are too many the one that is idle longest
/// gives way.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/process/listening.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy {

/// A conversation with one client. Runs on the server's thread: short, without waiting.
class Session {
 public:
  enum class Next : std::uint8_t { listen, close };
  virtual ~Session() = default;

  /// What it says first, appended to `output`.
  virtual Next greet(std::string& /*output*/) { return Next::listen; }
  /// Takes from the front of `input` what is complete, and answers. It may leave some, when the
  /// answer is large: it is asked again once that is written. `close`: once the answer is written.
  virtual Next talk(std::string& input, std::string& output) = 0;
};

/// An address and what is spoken there.
struct Door {
  Listening listening;
  std::function<std::unique_ptr<Session>()> open_session;
  std::chrono::nanoseconds idle = std::chrono::seconds{10};
  std::size_t input_limit = std::size_t{64} << 10;
};

class SideServer {
 public:
  static constexpr std::size_t most_clients = 64;

  /// Serves at once.
  SideServer(std::vector<Door> doors, Clock& clock);
  /// Ends every conversation. Waits for the session that is at work.
  ~SideServer();
  SideServer(const SideServer&) = delete;
  SideServer& operator=(const SideServer&) = delete;

  /// A successor has the doors too: nobody else is let in here, and the files of unix sockets stay
  /// when this ends. Any thread.
  void hand_on() noexcept;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sluice::proxy
