/// Clients that ask all the time: each sends pipelines for keys of its own, and checks that every
/// reply is there, in its place, and carries the key that was asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace sluice::test {

class Load {
 public:
  struct Options {
    int clients = 4;
    int depth = 16;           ///< requests in a pipeline
    bool reconnects = false;  ///< each pipeline over a connection of its own
  };
  struct Count {
    std::uint64_t replies = 0;   ///< right ones
    std::uint64_t wrong = 0;     ///< another key's, or none of a kind that was asked for
    std::uint64_t errors = 0;    ///< error replies
    std::uint64_t lost = 0;      ///< the connection ended with requests unanswered
    std::uint64_t unserved = 0;  ///< those of `lost` that ended before the first reply
    std::uint64_t refused = 0;   ///< no connection could be made
    std::string first_trouble;
  };

  Load(std::uint16_t port, Options options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  std::uint64_t replies() const noexcept { return replies_.load(); }
  /// Until so many more replies have come; false: they did not within 20 seconds.
  bool goes_on(std::uint64_t more = 2000) const;
  /// Ends the clients. The sum of all.
  Count stop();

 private:
  void run(int number, Count& count);

  const std::uint16_t port_;
  const Options options_;
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> replies_{0};
  std::vector<Count> counts_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::test
