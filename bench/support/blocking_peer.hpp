/// The peer: a naive client, one blocking hiredis connection.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

namespace sluice::bench {

class BlockingPeer {
 public:
  explicit BlockingPeer(int port);
  ~BlockingPeer();
  BlockingPeer(const BlockingPeer&) = delete;
  BlockingPeer& operator=(const BlockingPeer&) = delete;

  /// Sends one command and waits for its reply; an error reply ends the program.
  void command(const std::vector<std::string>& words);

 private:
  redisContext* context_;
};

}  // namespace sluice::bench
