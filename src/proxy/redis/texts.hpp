/// What the proxy says to a client of Redis in its own name. Redis's words where Redis would say
/// it.
#pragma once

#include <string>
#include <string_view>

#include "proxy/protocol/protocol.hpp"
#include "proxy/redis/ways.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

/// One error reply: "-ERR text\r\n"; line ends in `text` become blanks.
void append_error(std::string& out, std::string_view text);

void append_unknown_command(std::string& out, Words words);
void append_wrong_arity(std::string& out, std::string_view command);
void append_lost_keys(std::string& out, std::string_view command);
void append_needs_consent(std::string& out, std::string_view command, std::string_view pool);
void append_never(std::string& out, std::string_view command, Never never);

std::string_view failure_reply(Failure failure) noexcept;

}  // namespace sluice::proxy
