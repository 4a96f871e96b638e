// CLIENT: what a client says of itself and asks about itself. Nothing of it reaches the servers:
// other clients share their connections.
#include <fmt/format.h>

#include <algorithm>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::size_t longest_told = 256;  // bytes of a name

std::string error(std::string_view text) {
  std::string reply;
  resp::ReplyWriter{reply}.error(text);
  return reply;
}

bool is_plain(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

/// Where the value of `what` stands in "name=x lib-name=y"; npos: nowhere.
std::size_t find_value(std::string_view told, std::string_view what) noexcept {
  for (std::size_t at = 0; at < told.size();) {
    const auto end = std::min(told.find(' ', at), told.size());
    if (told.substr(at, end - at).starts_with(what) && told[at + what.size()] == '=')
      return at + what.size() + 1;
    at = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view ClientSession::told(std::string_view what) const noexcept {
  const auto at = find_value(told_, what);
  if (at == std::string::npos) return {};
  return std::string_view{told_}.substr(at, std::min(told_.find(' ', at), told_.size()) - at);
}

bool ClientSession::tell(std::string_view what, std::string_view value) {
  if (!is_plain(value)) {
    answer(error(fmt::format("ERR {} cannot contain spaces, newlines or special characters.",
                             what == "name" ? "Client names" : what)));
  } else if (value.size() > longest_told) {
    answer(error(fmt::format("ERR {} is too long: at most {} bytes", what, longest_told)));
  } else {
    keep(what, value);
    return true;
  }
  return false;
}

std::string_view ClientSession::user() const noexcept {
  const auto user = told("user");
  return user.empty() ? default_user : user;
}

void ClientSession::keep(std::string_view what, std::string_view value) {
  if (const auto at = find_value(told_, what); at != std::string::npos) {
    const auto begin = at - what.size() - 1;
    told_.erase(begin, told_.find(' ', at) - begin + 1);  // with the blank behind it
  }
  if (value.empty()) return;
  std::string all;  // of just the size it needs
  all.reserve(told_.size() + what.size() + value.size() + 2);
  all.append(what).append("=").append(value).append(" ").append(told_);
  told_ = std::move(all);
}

std::string_view Client::user() const noexcept {
  return session_ ? session_->user() : default_user;
}

bool Client::is_subscribed() const noexcept { return session_ && session_->is_subscribed(); }

std::string Client::line() const {
  const auto told = [&](std::string_view what) {
    return session_ ? session_->told(what) : std::string_view{};
  };
  const auto seconds = [&](SteadyTime since) {
    return std::chrono::floor<std::chrono::seconds>(loop_.now() - since).count();
  };
  const bool in_transaction = session_ && session_->is_in_transaction();
  const auto address = peer();
  const auto& endpoint = pool_.settings().listen.endpoint;
  const auto unix_address = endpoint.unix_path + ":0";
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub=0 "
      "multi={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 "
      "tot-mem={} events=r cmd=NULL user={} redir=-1 resp={} lib-name={} lib-ver={}\n",
      id_, address == "unix" ? unix_address : address,
      endpoint.is_unix() ? unix_address : net::to_string(endpoint), descriptor(), told("name"),
      seconds(stranger_since_), seconds(last_active_),
      is_subscribed()                      ? "P"
      : in_transaction                     ? "x"
      : session_ && session_->is_blocked() ? "b"
                                           : "N",
      session_state_.mode.db, session_ ? session_->subscribed(false) : 0,
      session_ ? session_->subscribed(true) : 0, in_transaction ? 0 : -1, unread().size(), unsent(),
      holds(), user(), session_state_.mode.resp, told("lib-name"), told("lib-ver"));
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
  if (is("setname")) {
    if (tell("name", words[2])) answer(ok);
    return;
  }
  if (is("setinfo")) {
    const bool name = resp::is_word(words[2], "lib-name");
    if (!name && !resp::is_word(words[2], "lib-ver"))
      return answer(error(fmt::format("ERR Unrecognized option '{}'", words[2].substr(0, 128))));
    if (tell(name ? "lib-name" : "lib-ver", words[3])) answer(ok);
    return;
  }
  std::string reply;
  resp::ReplyWriter writer{reply, client_.mode().resp};
  if (is("id")) {
    writer.integer(static_cast<std::int64_t>(client_.id()));
  } else if (is("info")) {
    writer.verbatim(client_.line());
  } else if (is("getname")) {
    const auto name = told("name");
    name.empty() ? writer.null() : writer.bulk(name);
  } else {
    append_tracking_info(writer);
  }
  answer(reply);
}

}  // namespace sluice::proxy::flow
