/// A Link with what it refers to, for those who ask a server beside the Store's own Client.
#pragma once

#include <utility>

#include "redis/link.hpp"

namespace sluice::redis {

struct Line {
  Line(RedisOptions how, Reactor& reactor, Link::Kind kind)
      : options(std::move(how)), link(options, reactor, channels, trackers, kind) {}

  const RedisOptions options;
  Channels channels;
  Trackers trackers;
  Link link;
  SteadyTime asked{};
};

}  // namespace sluice::redis
