#include "proxy/redis/texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t shown_bytes = 128;  // of what a client has sent, as in Redis

std::string shown_arguments(Words words) {
  std::string shown;
  for (const auto word : words.subspan(1)) {
    if (shown.size() >= shown_bytes) break;
    shown += fmt::format("'{}' ", word.substr(0, shown_bytes - shown.size()));
  }
  return shown;
}

}  // namespace

void append_error(std::string& out, std::string_view text) {
  resp::ReplyWriter{out}.error(fmt::format("ERR {}", text));
}

void append_unknown_command(std::string& out, Words words) {
  const auto* const container = resp::find_command(words[0]);
  if (container != nullptr && words.size() > 1) {
    std::string name{container->name};
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    });
    append_error(out, fmt::format("unknown subcommand '{}'. Try {} HELP.",
                                  words[1].substr(0, shown_bytes), name));
    return;
  }
  append_error(out, fmt::format("unknown command '{}', with args beginning with: {}",
                                words[0].substr(0, shown_bytes), shown_arguments(words)));
}

void append_wrong_arity(std::string& out, std::string_view command) {
  append_error(out, fmt::format("wrong number of arguments for '{}' command", command));
}

void append_lost_keys(std::string& out, std::string_view command) {
  append_error(out, fmt::format("syntax error: '{}' does not tell which of its arguments are keys",
                                command));
}

void append_needs_consent(std::string& out, std::string_view command, std::string_view pool) {
  append_error(out,
               fmt::format("'{}' is not served here: name it in the setting `allow` of pool '{}'",
                           command, pool));
}

void append_never(std::string& out, std::string_view command, Never never) {
  static constexpr std::array<std::string_view, 3> rows{
      "'{}' cannot be served by a proxy: ask the server itself",
      "'{}' cannot be served by a proxy: the server would answer for all clients that share its "
      "connection",
      "This instance has cluster support disabled",  // what a server without it says
  };
  append_error(out, fmt::format(fmt::runtime(rows[static_cast<std::size_t>(never)]), command));
}

std::string_view failure_reply(Failure failure) noexcept {
  static constexpr std::array<std::string_view, 9> rows{
      "-ERR Connection refused\r\n",
      "-ERR Connection timed out\r\n",
      "-ERR Connection reset by peer\r\n",
      "-ERR Host is down\r\n",
      "-ERR Invalid argument\r\n",
      "-ERR unknown\r\n",
      "-CROSSSLOT Keys in request don't have the same home: they are on different servers\r\n",
      "-ERR the proxy is at a limit of its own, nothing was done: try again later\r\n",
      "-ERR the server's reply is beyond reply_size_limit\r\n",
  };
  return rows[static_cast<std::size_t>(failure)];
}

}  // namespace sluice::proxy
