/// A server that does what a test tells it to: cut replies, nonsense, silence. One connection at a
/// time, unless the test says otherwise.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "redis/redis_store.hpp"
#include "resp/request_parser.hpp"

namespace sluice::test {

class FakeServer {
 public:
  /// One accepted connection. What blocks ends early when the test ends.
  class Peer {
   public:
    Peer(int descriptor, int stop) : descriptor_(descriptor), stop_(stop) {}

    /// The next command; empty: the client has closed, or the test is over.
    std::vector<std::string> command();
    void send(std::string_view bytes);
    /// Answers the greeting as a server without data would. False: the client has closed.
    bool greet();
    /// The connection is reset, now.
    void reset();
    /// Until the client closes or the test is over; swallows what comes.
    void wait_for_end();

   private:
    bool receive();

    int descriptor_;
    int stop_;
    std::string input_;
    resp::RequestParser parser_;
  };

  enum class Serves { one_by_one, at_once };

  /// `serve` is called for each connection, with its number from 0; the connection is closed when
  /// it returns. At once: each in a thread of its own.
  explicit FakeServer(std::function<void(Peer&, int number)> serve,
                      Serves how = Serves::one_by_one);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// With a quick return after trouble.
  redis::RedisOptions options() const;

 private:
  void run(const std::function<void(Peer&, int)>& serve, Serves how) const;

  int listener_ = -1;
  int stop_ = -1;  // an eventfd
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace sluice::test
