// CLIENT: what a client says of itself and asks about itself. Nothing of it reaches the servers:
// other clients share their connections.
#include <fmt/format.h>

#include "front/client_line.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

std::string error(std::string_view text) {
  std::string reply;
  resp::ReplyWriter{reply}.error(text);
  return reply;
}

}  // namespace

std::string_view ClientSession::user() const noexcept {
  const auto user = words_.of("user");
  return user.empty() ? default_user : user;
}

std::string_view Client::user() const noexcept {
  return session_ ? session_->user() : default_user;
}

bool Client::is_subscribed() const noexcept { return session_ && session_->is_subscribed(); }

std::string Client::line() const {
  static const front::OwnWords nothing;
  const auto seconds = [&](SteadyTime since) {
    return std::chrono::floor<std::chrono::seconds>(loop_.now() - since).count();
  };
  const bool in_transaction = session_ && session_->is_in_transaction();
  const auto address = peer();
  const auto& endpoint = pool_.settings().listen.endpoint;
  const auto unix_address = endpoint.unix_path + ":0";
  return front::to_string(
      {.id = id_,
       .address = address == "unix" ? unix_address : address,
       .local_address = endpoint.is_unix() ? unix_address : net::to_string(endpoint),
       .descriptor = descriptor(),
       .age_s = seconds(stranger_since_),
       .idle_s = seconds(last_active_),
       .flags = is_subscribed()                      ? "P"
                : in_transaction                     ? "x"
                : session_ && session_->is_blocked() ? "b"
                                                     : "N",
       .database = session_state_.mode.db,
       .channels = session_ ? session_->subscribed(false) : 0,
       .patterns = session_ ? session_->subscribed(true) : 0,
       .queued = in_transaction ? 0 : -1,
       .unread = unread().size(),
       .unsent = unsent(),
       .memory = holds(),
       .user = user(),
       .protocol = session_state_.mode.resp},
      session_ ? session_->words() : nothing);
}

void ClientSession::set_reply_mode(std::string_view mode) {
  auto& replies = client_.reply_mode();
  if (resp::is_word(mode, "on")) {
    replies.turn_on();
    answer("+OK\r\n");
  } else if (resp::is_word(mode, "off")) {
    replies.turn_off();
  } else if (resp::is_word(mode, "skip")) {
    replies.skip_next();
  } else {
    answer("-ERR syntax error\r\n");
  }
}

namespace {

/// A subcommand whose answer is a text.
struct Text {
  std::string_view name;
  std::string_view off;  ///< the reply to OFF
  std::string_view on;   ///< to anything else
};
constexpr std::string_view ok = "+OK\r\n";
constexpr Text texts[] = {
    {"tracking", ok,
     "-ERR CLIENT TRACKING cannot be served by a proxy: its connections to servers are shared, and "
     "they would tell all clients\r\n"},
    {"caching",
     {},
     "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
     "OPTOUT mode enabled\r\n"},
    {"getredir", {}, ":-1\r\n"},
    {"no-evict", ok,
     "-ERR CLIENT NO-EVICT cannot be served by a proxy: its connections to servers are shared\r\n"},
    {"no-touch", ok,
     "-ERR CLIENT NO-TOUCH cannot be served by a proxy: its connections to servers are shared\r\n"},
};

void append_tracking_info(resp::ReplyWriter& writer) {
  writer.map(3);
  writer.bulk("flags");
  writer.set(1);
  writer.items("off", "redirect", -1, "prefixes");
  writer.array(0);
}

}  // namespace

void ClientSession::client(Words words, std::string_view, const Plan&) {
  const auto is = [verb = words[1]](std::string_view name) { return resp::is_word(verb, name); };
  for (const auto& text : texts)
    if (is(text.name))
      return answer(!text.off.empty() && resp::is_word(words[2], "off") ? text.off : text.on);

  if (is("reply")) return set_reply_mode(words[2]);
  if (is("list")) return list(words);
  if (is("setname") || is("setinfo")) {
    const auto refused =
        is("setname") ? words_.take("name", words[2]) : words_.take_info(words[2], words[3]);
    return answer(refused.empty() ? std::string{ok} : error(refused));
  }
  std::string reply;
  resp::ReplyWriter writer{reply, client_.mode().resp};
  if (is("id")) {
    writer.integer(static_cast<std::int64_t>(client_.id()));
  } else if (is("info")) {
    writer.verbatim(client_.line());
  } else if (is("getname")) {
    const auto name = words_.of("name");
    name.empty() ? writer.null() : writer.bulk(name);
  } else {
    append_tracking_info(writer);
  }
  answer(reply);
}

}  // namespace sluice::proxy::flow
