/// From the replies of fragments, or of all servers, to the one that the client gets.
#pragma once

#include <span>
#include <string>

#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

struct RedisMerging {
  bool partial =
      false;  ///< of Merge::by_key: an error stands in the place of each key that has none
  bool strict = false;  ///< as twemproxy: any error but our own becomes "-ERR Invalid argument"
};

/// REQUIRES: `plan.merge` is not none, `replies` is not empty and each is a whole reply.
void append_merged_replies(std::string& out, const Plan& plan,
                           std::span<const FragmentReply> replies, RedisMerging merging);

}  // namespace sluice::proxy
