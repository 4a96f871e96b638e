/// The replies that the proxy makes for a client of Redis: its own errors, in Redis's words where
/// Redis would say them, and one reply from those of several servers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "proxy/protocol/protocol.hpp"
#include "proxy/redis/routes.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

/// One error reply: "-ERR text\r\n"; line ends in `text` become blanks.
std::string error_reply(std::string_view text);
std::string unknown_command(Words words);
std::string wrong_arity(std::string_view command);
std::string not_served(std::string_view command, Never never);
std::string_view failure_reply(Failure failure) noexcept;

struct RedisMerging {
  bool partial = false;  ///< of Merge::by_key: a key without a reply has an error in its place
  bool strict = false;   ///< as twemproxy: any error but our own becomes "-ERR Invalid argument"
};

/// The reply to the client, from those of fragments or of all servers.
/// REQUIRES: `plan.merge` is not none, `replies` is not empty and each is a whole reply.
void append_merged_replies(std::string& out, const Plan& plan,
                           std::span<const FragmentReply> replies, RedisMerging merging);

}  // namespace sluice::proxy
