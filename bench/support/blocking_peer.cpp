#include "support/blocking_peer.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <stdexcept>

namespace sluice::bench {

BlockingPeer::BlockingPeer(int port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err) throw std::runtime_error{"hiredis cannot connect"};
}

BlockingPeer::~BlockingPeer() { redisFree(context_); }

void BlockingPeer::command(const std::vector<std::string>& words) {
  std::vector<const char*> data;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    data.push_back(word.data());
    sizes.push_back(word.size());
  }
  auto* const reply = static_cast<redisReply*>(
      redisCommandArgv(context_, static_cast<int>(words.size()), data.data(), sizes.data()));
  if (!reply) throw std::runtime_error{fmt::format("hiredis: {}", context_->errstr)};
  if (reply->type == REDIS_REPLY_ERROR) {
    const std::string text{reply->str, static_cast<std::size_t>(reply->len)};
    freeReplyObject(reply);
    throw std::runtime_error{"hiredis: " + text};
  }
  freeReplyObject(reply);
}

}  // namespace sluice::bench
