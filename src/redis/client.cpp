#include "redis/client.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::redis {

Client::Client(RedisOptions options)
    : options_(std::move(options)),
      link_(std::make_shared<Link>(options_, reactor_, channels_, Link::Kind::shared)) {}

void Client::open(std::shared_ptr<Client> self) {
  reactor_.add(link_);
  reactor_.start(std::move(self));
  link_->wait_for_greeting();
}

void Client::close() {
  std::vector<std::shared_ptr<Link>> lent;
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    lent = lent_;
    spare_.clear();
  }
  link_->close();
  for (const auto& link : lent) link->close();
  reactor_.stop();
}

std::shared_ptr<Link> Client::lend() {
  const std::lock_guard lock{mutex_};
  if (lent_.size() >= options_.most_blocking)
    throw Error{
        Errc::connection,
        fmt::format(
            "{} blocking commands wait on {} already, the most that this Store allows at once",
            lent_.size(), describe(options_))};
  std::shared_ptr<Link> link;
  if (spare_.empty()) {
    link = std::make_shared<Link>(options_, reactor_, channels_, Link::Kind::lent);
    if (!closed_) reactor_.add(link);
  } else {
    link = std::move(spare_.back());
    spare_.pop_back();
  }
  if (closed_) link->close();
  lent_.push_back(link);
  return link;
}

void Client::take_back(std::shared_ptr<Link> link) {
  const bool is_free = link->is_free();
  {
    const std::lock_guard lock{mutex_};
    std::erase(lent_, link);
    if (is_free && !closed_ && spare_.size() < most_spare) {
      spare_.push_back(std::move(link));
      return;
    }
  }
  link->close();
  reactor_.remove(*link);
}

}  // namespace sluice::redis
