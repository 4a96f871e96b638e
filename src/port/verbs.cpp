// A client says its name and how it speaks: AUTH, HELLO, CLIENT ..., RESET, QUIT, SHUTDOWN.
#include "port/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "engine/core/command.hpp"
#include "front/client_line.hpp"
#include "front/hello.hpp"
#include "net/socket.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "resp/command_rights.hpp"

namespace sluice::port {
namespace {

using resp::is_word;

std::int64_t seconds(SteadyTime since, SteadyTime now) {
  return std::chrono::floor<std::chrono::seconds>(now - since).count();
}

}  // namespace

const std::vector<Connection::Verb>& Connection::verbs() {
  using C = Connection;
  static const Verb rows[] = {
      // name, serve, ends_queue, while_listening
      {"acl|cat", &C::acl_cat},
      {"acl|list", &C::acl_list},
      {"acl|users", &C::acl_users},
      {"acl|whoami", &C::acl_whoami},
      {"auth", &C::auth, false, false},
      {"client|caching", &C::client_caching},
      {"client|getname", &C::client_getname},
      {"client|getredir", &C::client_getredir},
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
      {"client|tracking", &C::client_tracking},
      {"client|trackinginfo", &C::client_trackinginfo},
      {"client|unblock", &C::client_unblock},
      {"client|unpause", &C::client_unpause},
      {"discard", &C::discard, true},
      {"exec", &C::exec, true},
      {"hello", &C::hello},
      {"monitor", &C::monitor},
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

bool Connection::log_in(std::string_view user, std::string_view password) {
  User* const known = thread_.users().find(user);
  if (!known || !known->is_admitted_by(password)) return false;
  user_ = known;
  return true;
}

/// At once, unless logins from this connection or this address have failed of late: then the
/// answer, right or wrong, waits, and with it what the client asks next.
void Connection::answer_login(WireReply& reply) {
  auto& throttle = port().logins();
  const auto from = net::origin_of(descriptor());
  const auto now = loop_.now();
  if (reply.is_error()) {
    throttle.note_failure(from, now);
    if (failed_logins_ < UINT8_MAX) ++failed_logins_;
  }
  const auto wait =
      std::max(throttle.wait_of(from, now), front::LoginThrottle::wait_for(failed_logins_));
  if (wait.count() == 0) return;
  delayed_ = true;
  loop_.after(wait, [&thread = thread_, id = id_] {
    Connection* const connection = thread.find(id);
    if (!connection) return;
    connection->delayed_ = false;
    connection->committed();
    if (!connection->closed() && connection->reads()) connection->resume();
  });
}

void Connection::auth(Words words, WireReply& reply) {
  if (words.size() > 3) return reply.error(engine::syntax_error);
  if (words.size() == 2 && thread_.users().newcomer())
    return reply.error(front::no_password_wanted);
  const bool right = log_in(words.size() == 3 ? words[1] : "default", words.back());
  right ? reply.ok() : reply.error(front::wrong_password);
  answer_login(reply);
}

void Connection::hello(Words words, WireReply& reply) {
  const auto hello = front::read_hello(words);
  if (!hello.error.empty()) return reply.error(hello.error);
  if (hello.login && !log_in(hello.login->first, hello.login->second)) {
    reply.error(front::wrong_password);
    return answer_login(reply);
  }
  if (!user_) return reply.error(front::hello_without_login);
  static_cast<void>(thread_.section());
  if (hello.name)
    if (const auto refused = words_.take("name", *hello.name); !refused.empty())
      return reply.error(refused);
  session_.protocol = hello.protocol.value_or(session_.protocol);
  reply.map(7);
  reply.writer().items("server", "redis", "version", "7.2.0", "proto", session_.protocol, "id", id_,
                       "mode", "standalone", "role", "master", "modules");
  reply.array(0);
  if (hello.login) answer_login(reply);
}

void Connection::quit(Words, WireReply& reply) {
  reply.ok();
  closing_ = true;
}

void Connection::reset(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  forget();
  session_ = {.database = 0, .protocol = 2, .guard = this};
  user_ = thread_.users().newcomer();
  words_.clear();
  reply_mode_.turn_on();
  reply.simple("RESET");
}

void Connection::acl_whoami(Words, WireReply& reply) { reply.bulk(user_.load()->name); }

void Connection::acl_users(Words, WireReply& reply) {
  const auto& users = thread_.users().all();
  reply.array(users.size());
  for (const auto& [name, user] : users) reply.bulk(name);
}

void Connection::acl_list(Words, WireReply& reply) {
  const auto& users = thread_.users().all();
  reply.array(users.size());
  for (const auto& [name, user] : users) reply.bulk(user.describe());
}

void Connection::acl_cat(Words words, WireReply& reply) {
  if (words.size() > 3) return reply.error(engine::wrong_arity("acl|cat"));
  const auto categories = resp::all_categories();
  if (words.size() == 2) {
    reply.array(categories.size());
    for (const auto& category : categories) reply.bulk(category.name);
    return;
  }
  const auto wanted = std::ranges::find_if(
      categories, [&](const auto& category) { return is_word(words[2], category.name); });
  if (wanted == categories.end())
    return reply.error(fmt::format("ERR Unknown category '{}'", engine::shown(words[2])));
  std::vector<std::string_view> members;
  for (const auto& spec : resp::all_commands())
    if ((resp::categories_of(spec) & wanted->bit) != 0) members.push_back(spec.name);
  reply.array(members.size());
  for (const auto name : members) reply.bulk(name);
}

void Connection::shutdown(Words, WireReply&) {
  port().stop();
  closing_ = true;
}

// --- CLIENT ---

void Connection::client_id(Words, WireReply& reply) {
  reply.integer(static_cast<std::int64_t>(id_));
}

void Connection::client_getname(Words, WireReply& reply) {
  const auto name = words_.of("name");
  name.empty() ? reply.null() : reply.bulk(name);
}

void Connection::client_setname(Words words, WireReply& reply) {
  static_cast<void>(thread_.section());  // CLIENT LIST reads it
  const auto refused = words_.take("name", words[2]);
  refused.empty() ? reply.ok() : reply.error(refused);
}

void Connection::client_setinfo(Words words, WireReply& reply) {
  static_cast<void>(thread_.section());
  const auto refused = words_.take_info(words[2], words[3]);
  refused.empty() ? reply.ok() : reply.error(refused);
}

std::string Connection::describe() const {
  const auto now = port().clock().steady();
  const auto* const command = last_command_.load();
  const User* const user = user_;
  std::string flags;
  if (is_listening()) flags += 'P';
  if (in_queue_ >= 0) flags += 'x';
  if (waits_) flags += 'b';
  if (watching_.is_dirty) flags += 'd';
  if (flags.empty()) flags = "N";
  return front::to_string({.id = id_,
                           .address = address_,
                           .local_address = net::local_of(descriptor()),
                           .descriptor = descriptor(),
                           .age_s = seconds(begun_, now),
                           .idle_s = seconds(last_active_, now),
                           .flags = flags,
                           .database = session_.database,
                           .channels = listens_to(Listening::channel),
                           .patterns = listens_to(Listening::pattern),
                           .shards = listens_to(Listening::shard),
                           .queued = in_queue_,
                           .command = command ? command->name : "NULL",
                           .user = user ? std::string_view{user->name} : "(none)",
                           .protocol = session_.protocol},
                          words_);
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
        if (!thread_.users().find(value))
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
    const User* const user = connection->user_;
    if (!filter.user.empty() && !(user && user->name == filter.user)) continue;
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
  if (thread_.is_here() && thread_.in_hand() == this)
    closing_ = true;
  else
    thread_.close_soon(id_);
}

void Connection::client_reply(Words words, WireReply& reply) {
  if (is_word(words[2], "on")) {
    reply_mode_.turn_on();
    reply.ok();
  } else if (is_word(words[2], "off")) {
    reply_mode_.turn_off();
  } else if (is_word(words[2], "skip")) {
    reply_mode_.skip_next();
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
  static_cast<void>(thread_.section());
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
