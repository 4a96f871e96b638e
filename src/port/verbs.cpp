// Who the client is, and how it speaks: AUTH, HELLO, CLIENT ..., RESET, QUIT, SHUTDOWN.
#include "port/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "engine/core/command.hpp"
#include "net/socket.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"

namespace sluice::port {
namespace {

using resp::is_word;

constexpr std::string_view wrong_password =
    "WRONGPASS invalid username-password pair or user is disabled.";

/// Takes as long for a wrong word as for the right one.
bool is_same(std::string_view given, std::string_view secret) noexcept {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
  return difference == 0;
}

bool is_nameable(std::string_view word) noexcept {
  return std::ranges::all_of(word, [](char c) { return c >= '!' && c <= '~'; });
}

std::int64_t seconds(SteadyTime since, SteadyTime now) {
  return std::chrono::floor<std::chrono::seconds>(now - since).count();
}

}  // namespace

const std::vector<Connection::Verb>& Connection::verbs() {
  using C = Connection;
  static const Verb rows[] = {
      // name, serve, ends_queue, while_listening
      {"acl|whoami", &C::acl_whoami},
      {"auth", &C::auth, false, false},
      {"client|getname", &C::client_getname},
      {"client|id", &C::client_id},
      {"client|info", &C::client_info},
      {"client|kill", &C::client_kill},
      {"client|list", &C::client_list},
      {"client|no-evict", &C::client_no_touch},
      {"client|no-touch", &C::client_no_touch},
      {"client|pause", &C::client_pause},
      {"client|reply", &C::client_reply},
      {"client|setinfo", &C::client_setinfo},
      {"client|setname", &C::client_setname},
      {"client|unblock", &C::client_unblock},
      {"client|unpause", &C::client_unpause},
      {"discard", &C::discard, true},
      {"exec", &C::exec, true},
      {"hello", &C::hello},
      {"multi", &C::multi, true},
      {"psubscribe", &C::psubscribe, false, true},
      {"pubsub|channels", &C::pubsub_channels},
      {"pubsub|numpat", &C::pubsub_numpat},
      {"pubsub|numsub", &C::pubsub_numsub},
      {"pubsub|shardchannels", &C::pubsub_shardchannels},
      {"pubsub|shardnumsub", &C::pubsub_shardnumsub},
      {"punsubscribe", &C::punsubscribe, false, true},
      {"quit", &C::quit, true, true},
      {"reset", &C::reset, true, true},
      {"shutdown", &C::shutdown},
      {"ssubscribe", &C::ssubscribe, false, true},
      {"subscribe", &C::subscribe, false, true},
      {"sunsubscribe", &C::sunsubscribe, false, true},
      {"unsubscribe", &C::unsubscribe, false, true},
      {"unwatch", &C::unwatch},
      {"watch", &C::watch, true},
  };
  static const std::vector<Verb> by_index = [] {
    std::vector<Verb> all(resp::all_commands().size());
    for (const auto& row : rows) all[resp::find_command(row.name)->index] = row;
    return all;
  }();
  return by_index;
}

const Connection::Verb* Connection::verb_of(const resp::CommandSpec& spec) noexcept {
  const auto& verb = verbs()[spec.index];
  return verb.serve ? &verb : nullptr;
}

bool Connection::log_in(std::string_view user, std::string_view password, WireReply& reply) {
  const auto& secret = port().settings().password;
  if (user != "default" || (!secret.empty() && !is_same(password, secret))) {
    reply.error(wrong_password);
    return false;
  }
  return logged_in_ = true;
}

void Connection::auth(Words words, WireReply& reply) {
  if (words.size() > 3) return reply.error(engine::syntax_error);
  if (words.size() == 2 && port().settings().password.empty())
    return reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are "
        "you sure your configuration is correct?");
  const auto user = words.size() == 3 ? words[1] : "default";
  if (log_in(user, words.back(), reply)) reply.ok();
}

void Connection::hello(Words words, WireReply& reply) {
  int protocol = session_.protocol;
  if (words.size() > 1) {
    const auto asked = parse_integer<std::int64_t>(words[1]);
    if (!asked) return reply.error("ERR Protocol version is not an integer or out of range");
    if (*asked != 2 && *asked != 3) return reply.error("NOPROTO unsupported protocol version");
    protocol = static_cast<int>(*asked);
  }
  std::optional<std::string_view> name;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (is_word(words[i], "auth") && i + 2 < words.size()) {
      if (!log_in(words[i + 1], words[i + 2], reply)) return;
      i += 2;
    } else if (is_word(words[i], "setname") && i + 1 < words.size()) {
      name = words[++i];
      if (!is_nameable(*name))
        return reply.error(
            "ERR Client names cannot contain spaces, newlines or special characters.");
    } else {
      return reply.error(fmt::format("ERR Syntax error in HELLO option '{}'", words[i]));
    }
  }
  if (!logged_in_)
    return reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  static_cast<void>(thread_.section());
  if (name) name_ = *name;
  session_.protocol = protocol;
  reply.map(7);
  reply.writer().items(
      std::string_view{"server"}, std::string_view{"redis"}, std::string_view{"version"},
      std::string_view{"7.2.0"}, std::string_view{"proto"}, protocol, std::string_view{"id"}, id_,
      std::string_view{"mode"}, std::string_view{"standalone"}, std::string_view{"role"},
      std::string_view{"master"}, std::string_view{"modules"});
  reply.array(0);
}

void Connection::quit(Words, WireReply& reply) {
  reply.ok();
  closing_ = true;
}

void Connection::reset(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  forget();
  session_ = {.database = 0, .protocol = 2};
  logged_in_ = port().settings().password.empty();
  name_.clear();
  muted_ = 0;
  reply.simple("RESET");
}

void Connection::acl_whoami(Words, WireReply& reply) { reply.bulk("default"); }

void Connection::shutdown(Words, WireReply&) {
  port().stop();
  closing_ = true;
}

// --- CLIENT ---

void Connection::client_id(Words, WireReply& reply) {
  reply.integer(static_cast<std::int64_t>(id_));
}

void Connection::client_getname(Words, WireReply& reply) {
  reply.bulk_or_null(name_.empty() ? nullptr : &name_);
}

void Connection::client_setname(Words words, WireReply& reply) {
  if (!is_nameable(words[2]))
    return reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
  static_cast<void>(thread_.section());  // CLIENT LIST reads it
  name_ = words[2];
  reply.ok();
}

void Connection::client_setinfo(Words words, WireReply& reply) {
  const bool is_name = is_word(words[2], "lib-name");
  if (!is_name && !is_word(words[2], "lib-ver"))
    return reply.error(fmt::format("ERR Unrecognized option '{}'", engine::shown(words[2])));
  if (!is_nameable(words[3]))
    return reply.error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", words[2]));
  static_cast<void>(thread_.section());
  (is_name ? library_ : library_version_) = words[3];
  reply.ok();
}

std::string Connection::describe() const {
  const auto now = port().clock().steady();
  const auto* const command = last_command_.load();
  std::string flags;
  if (is_listening()) flags += 'P';
  if (in_queue_ >= 0) flags += 'x';
  if (waits_) flags += 'b';
  if (watching_.is_dirty) flags += 'd';
  if (flags.empty()) flags = "N";
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}\n",
      id_, address_, net::local_of(descriptor()), descriptor(), name_, seconds(begun_, now),
      seconds(last_active_, now), flags, session_.database, listens_to(Listening::channel),
      listens_to(Listening::pattern), listens_to(Listening::shard), in_queue_.load(),
      command ? command->name : "NULL", session_.protocol, library_, library_version_);
}

void Connection::client_info(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  reply.verbatim(describe());
}

void Connection::client_list(Words words, WireReply& reply) {
  static_cast<void>(thread_.section());
  std::string text;
  if (words.size() > 3 && is_word(words[2], "id")) {
    for (const auto word : words.subspan(3)) {
      const auto id = parse_integer<std::uint64_t>(word);
      if (!id) return reply.error("ERR Invalid client ID");
      const auto found = port().connections().find(*id);
      if (found != port().connections().end()) text += found->second->describe();
    }
    return reply.verbatim(text);
  }
  std::string_view type;
  if (words.size() == 4 && is_word(words[2], "type")) {
    type = words[3];
    if (!is_word(type, "normal") && !is_word(type, "pubsub") && !is_word(type, "master") &&
        !is_word(type, "replica") && !is_word(type, "slave"))
      return reply.error(fmt::format("ERR Unknown client type '{}'", engine::shown(type)));
  } else if (words.size() != 2) {
    return reply.error(engine::syntax_error);
  }
  for (const auto& [id, connection] : port().connections()) {
    const bool listens = connection->is_listening();
    if (type.empty() || is_word(type, listens ? "pubsub" : "normal"))
      text += connection->describe();
  }
  reply.verbatim(text);
}

/// Which clients CLIENT KILL means.
struct KillFilter {
  std::optional<std::uint64_t> id;
  std::string_view address, local_address, type, user;
  std::optional<std::int64_t> oldest;
  bool skips_self = true;
  bool is_old_form = false;
};

void Connection::client_kill(Words words, WireReply& reply) {
  KillFilter filter;
  if (words.size() == 3) {
    filter = {.address = words[2], .skips_self = false, .is_old_form = true};
  } else {
    if (words.size() % 2 == 1) return reply.error(engine::syntax_error);
    for (std::size_t i = 2; i < words.size(); i += 2) {
      const auto value = words[i + 1];
      if (is_word(words[i], "id")) {
        filter.id = parse_integer<std::uint64_t>(value);
        if (!filter.id || *filter.id == 0)
          return reply.error("ERR client-id should be greater than 0");
      } else if (is_word(words[i], "addr")) {
        filter.address = value;
      } else if (is_word(words[i], "laddr")) {
        filter.local_address = value;
      } else if (is_word(words[i], "type")) {
        filter.type = value;
      } else if (is_word(words[i], "user")) {
        filter.user = value;
        if (value != "default")
          return reply.error(fmt::format("ERR No such user '{}'", engine::shown(value)));
      } else if (is_word(words[i], "maxage")) {
        filter.oldest = parse_integer<std::int64_t>(value);
        if (!filter.oldest) return reply.error("ERR maxage is not an integer or out of range");
      } else if (is_word(words[i], "skipme") && is_word(value, "yes")) {
        filter.skips_self = true;
      } else if (is_word(words[i], "skipme") && is_word(value, "no")) {
        filter.skips_self = false;
      } else {
        return reply.error(engine::syntax_error);
      }
    }
  }
  static_cast<void>(thread_.section());
  std::int64_t killed = 0;
  const auto now = port().clock().steady();
  for (const auto& [id, connection] : port().connections()) {
    if (filter.skips_self && connection == this) continue;
    if (filter.id && *filter.id != id) continue;
    if (!filter.address.empty() && filter.address != connection->address_) continue;
    if (!filter.local_address.empty() &&
        filter.local_address != net::local_of(connection->descriptor()))
      continue;
    if (!filter.type.empty() &&
        !is_word(filter.type, connection->is_listening() ? "pubsub" : "normal"))
      continue;
    if (filter.oldest && seconds(connection->begun_, now) < *filter.oldest) continue;
    ++killed;
    connection->end_soon();
  }
  if (!filter.is_old_form) return reply.integer(killed);
  killed != 0 ? reply.ok() : reply.error("ERR No such client");
}

/// Any thread, under the engine's lock.
void Connection::end_soon() {
  if (thread_.is_here() && thread_.in_hand() == this) {
    closing_ = true;
    return;
  }
  thread_.loop().post([&thread = thread_, id = id_] {
    if (Connection* const connection = thread.find(id)) connection->close();
  });
}

void Connection::client_reply(Words words, WireReply& reply) {
  if (is_word(words[2], "on")) {
    muted_ = 0;
    reply.ok();
  } else if (is_word(words[2], "off")) {
    muted_ = 255;
  } else if (is_word(words[2], "skip")) {
    if (muted_ != 255) muted_ = 2;
  } else {
    reply.error(engine::syntax_error);
  }
}

void Connection::client_no_touch(Words words, WireReply& reply) {
  const bool known = is_word(words[2], "on") || is_word(words[2], "off");
  known ? reply.ok() : reply.error(engine::syntax_error);
}

void Connection::client_pause(Words words, WireReply& reply) {
  const auto ms = parse_integer<std::int64_t>(words[2]);
  if (!ms || *ms > std::int64_t{1} << 40)
    return reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return reply.error("ERR timeout is negative");
  bool writes_alone = false;
  if (words.size() > 3) {
    writes_alone = is_word(words[3], "write");
    if (words.size() > 4 || (!writes_alone && !is_word(words[3], "all")))
      return reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  port().pause_clients(port().clock().steady() + std::chrono::milliseconds{*ms}, writes_alone);
  reply.ok();
}

void Connection::client_unpause(Words, WireReply& reply) {
  port().pause_clients(SteadyTime::min(), false);
  reply.ok();
}

void Connection::client_unblock(Words words, WireReply& reply) {
  const auto id = parse_integer<std::uint64_t>(words[2]);
  if (!id) return reply.error(engine::not_an_integer);
  bool with_error = false;
  if (words.size() == 4) {
    with_error = is_word(words[3], "error");
    if (!with_error && !is_word(words[3], "timeout"))
      return reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  static_cast<void>(thread_.section());
  const auto found = port().connections().find(*id);
  const bool waits = found != port().connections().end() && found->second->is_waiting();
  if (waits)
    found->second->thread_.loop().post([&thread = found->second->thread_, id = *id, with_error] {
      if (Connection* const connection = thread.find(id)) connection->unblock(with_error);
    });
  reply.integer(waits ? 1 : 0);
}

}  // namespace sluice::port
