#include "proxy/process/admin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <system_error>

#include "base/integer.hpp"
#include "proxy/config/read.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/watch/documents.hpp"
#include "resp/request_parser.hpp"
#include "resp/writer.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::process {

/// One request: what its handler reads and where it answers.
struct AdminCall {
  std::span<const std::string_view> words;  ///< after the command's own
  watch::Registry& registry;
  const AdminActions& actions;
  resp::ReplyWriter& reply;
};

namespace {

bool same(std::string_view a, std::string_view upper) {
  return std::ranges::equal(a, upper, [](char x, char y) {
    return (x >= 'a' && x <= 'z' ? static_cast<char>(x - 'a' + 'A') : x) == y;
  });
}

Error bad(const std::string& why) { return Error{Errc::bad_argument, why}; }

std::size_t number_or(Words words, std::size_t otherwise) {
  if (words.empty()) return otherwise;
  const auto value = parse_integer<std::size_t>(words.front());
  if (!value) throw bad(fmt::format("'{}' is no number", words.front().substr(0, 64)));
  return *value;
}

template <class Action>
const Action& available(const Action& action) {
  if (!action) throw bad("this process does not offer that");
  return action;
}

std::int64_t unix_time(WallTime at) {
  return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
}

void stats(const AdminCall& call) {
  call.reply.bulk(watch::statistics_json(call.registry.snapshot()));
}

void latency_row(const AdminCall& call, std::string_view pool, std::string_view what,
                 std::string_view name, const LatencyCounts& latency) {
  call.reply.array(8);
  call.reply.items(pool, what, name, latency.count());
  for (const double share : {0.5, 0.99, 0.999, 1.0})
    call.reply.integer(latency.quantile(share).count());
}

void latency(const AdminCall& call) {
  const auto snapshot = call.registry.snapshot();
  const auto each = [&](auto visit) {
    const auto wanted = [&](const std::string& name) {
      return call.words.empty() || call.words.front() == name;
    };
    for (const auto& pool : snapshot.pools) {
      for (const auto& command : pool.commands)
        if (wanted(command.name)) visit(pool.name, "command", command.name, command.latency);
      for (const auto& server : pool.servers)
        if (wanted(server.name)) visit(pool.name, "server", server.name, server.latency);
    }
  };
  std::size_t rows = 0;
  each([&](auto&&...) { ++rows; });
  call.reply.array(rows);
  each([&](auto&&... row) { latency_row(call, row...); });
}

void slow_log_get(const AdminCall& call) {
  const auto entries = call.registry.slow_log(number_or(call.words, 10));
  call.reply.array(entries.size());
  for (const auto& entry : entries) {  // the first six as Redis has them
    call.reply.array(8);
    call.reply.items(entry.id, unix_time(entry.at), entry.took.count());
    call.reply.array(2);
    call.reply.items(entry.command, entry.key, entry.client, "", entry.pool, entry.server);
  }
}

void slow_log_reset(const AdminCall& call) {
  call.registry.reset_slow_log();
  call.reply.simple("OK");
}

void hot_keys(const AdminCall& call) {
  const auto keys = call.registry.hot_keys(number_or(call.words, 10));
  call.reply.array(keys.size());
  for (const auto& key : keys) {
    call.reply.array(4);
    call.reply.items(key.key, fmt::format("{:.1f}", key.rate), fmt::format("{:.4f}", key.share),
                     fmt::format("{:.1f}", key.most_rate));
  }
}

void big_values(const AdminCall& call) {
  const auto values = call.registry.big_values(number_or(call.words, 10));
  call.reply.array(values.size());
  for (const auto& value : values) {
    call.reply.array(5);
    call.reply.items(value.key, value.bytes, value.pool, value.command, unix_time(value.at));
  }
}

void clients(const AdminCall& call) { call.reply.bulk(available(call.actions.clients)()); }
void reload(const AdminCall& call) { call.reply.bulk(available(call.actions.reload)()); }
void upgrade(const AdminCall& call) { call.reply.bulk(available(call.actions.upgrade)()); }
void check_config(const AdminCall& call) {
  call.reply.bulk(available(call.actions.check_config)());
}
void move(const AdminCall& call) { call.reply.bulk(available(call.actions.move)(call.words)); }
void ping(const AdminCall& call) { call.reply.simple("PONG"); }

void drain(const AdminCall& call) {
  available(call.actions.drain)();
  call.reply.simple("OK");
}

void log_level(const AdminCall& call) {
  if (call.words.empty()) {
    call.reply.integer(available(call.actions.log_level)());
    return;
  }
  const auto level = number_or(call.words, 0);
  if (level > 11) throw bad("a log level is a number from 0 to 11");
  available(call.actions.set_log_level)(static_cast<int>(level));
  call.reply.simple("OK");
}

void help(const AdminCall& call);

constexpr std::string_view how_many = "How many (10)";
constexpr AdminCommand commands[] = {
    {"RELOAD", "reload", "Read its file again; a bad file is refused as a whole", reload},
    {"CONFIG CHECK", "check-config", "What a reload would change", check_config},
    {.name = "STATS",
     .verb = "stats",
     .help = "All counters and latencies, as JSON",
     .run = stats,
     .replies_json = true},
    {"LATENCY", "latency", "Pool, kind, name, count, p50, p99, p99.9 and most (us)", latency,
     "NAME", "Of this command or server alone"},
    {"SLOWLOG GET", "slowlog",
     "The slowest requests, newest first: id, time, us, (command, key), client, \"\", pool, server",
     slow_log_get, "N", how_many},
    {"SLOWLOG RESET", "slowlog-reset", "Forget the slow requests", slow_log_reset},
    {"HOTKEYS", "hotkeys",
     "Key, requests a second and share of all (at least), requests a second (at most)", hot_keys,
     "N", how_many},
    {"BIGVALUES", "bigvalues", "Key, bytes, pool, command, time; largest first", big_values, "N",
     how_many},
    {.name = "CLIENTS",
     .verb = "clients",
     .help = "Who is connected, as JSON",
     .run = clients,
     .replies_json = true},
    {"LOGLEVEL", "loglevel", "Tell or set the level of its log", log_level, "LEVEL", "0 to 11"},
    {"DRAIN", "drain", "Accept no more clients, answer what is asked, and end", drain},
    {"UPGRADE", "upgrade", "Start its binary anew and hand it the sockets and the clients",
     upgrade},
    {.name = "MOVE",
     .verb = "",
     .help = "For `sluice proxy move`: HELD or MOVING FILE USER PASSWORD PRINT; READY, END, "
             "CANCEL, STATUS",
     .run = move,
     .argument = "PHASE ...",
     .more_arguments = 4},
    {"PING", "", "PONG", ping},
    {"HELP", "", "This table", help},
};

void help(const AdminCall& call) {
  call.reply.array(std::size(commands));
  for (const auto& command : commands)
    call.reply.bulk(fmt::format("{}{}{}{} -- {}", command.name,
                                command.argument.empty() ? "" : " [", command.argument,
                                command.argument.empty() ? "" : "]", command.help));
}

/// How many words of the request name this command; none: it is another.
std::size_t words_of(const AdminCommand& command, Words words) {
  const auto space = command.name.find(' ');
  if (space == std::string_view::npos) return same(words[0], command.name) ? 1 : 0;
  const bool both = words.size() > 1 && same(words[0], command.name.substr(0, space)) &&
                    same(words[1], command.name.substr(space + 1));
  return both ? 2 : 0;
}

void execute(Words words, watch::Registry& registry, const AdminActions& actions,
             resp::ReplyWriter& reply) {
  for (const auto& command : commands) {
    const std::size_t name = words_of(command, words);
    if (name == 0) continue;
    const Words rest = words.subspan(name);
    const std::size_t most = (command.argument.empty() ? 0 : 1) + command.more_arguments;
    if (rest.size() > most)
      throw bad(fmt::format("{} takes at most {} arguments", command.name, most));
    command.run({rest, registry, actions, reply});
    return;
  }
  throw bad(fmt::format("unknown command '{}', try HELP", words[0].substr(0, 64)));
}

constexpr std::size_t most_words = 16;
constexpr std::size_t most_bytes = 4096;
/// The rest of a pipeline waits until the client has taken so much.
constexpr std::size_t enough_output = std::size_t{1} << 20;

class AdminConversation final : public Conversation {
 public:
  AdminConversation(watch::Registry& registry, const AdminActions& actions)
      : registry_(registry), actions_(actions), parser_(limits()) {}

  Next talk(std::string& input, std::string& output) override {
    using State = resp::RequestParser::State;
    while (output.size() < enough_output) {
      const State state = parser_.parse(input);
      if (state == State::incomplete) return Next::listen;
      if (state == State::bad) {
        resp::ReplyWriter{output}.error("ERR " + parser_.error());
        return Next::close;
      }
      const Words words = parser_.words();
      // A browser was led here: what follows is no command.
      if (!words.empty() && is_http(words)) return Next::close;
      const Next next = words.empty() ? Next::listen : answer(output);
      input.erase(0, parser_.size());
      if (next == Next::close) return next;
    }
    return Next::listen;
  }

 private:
  static resp::RequestLimits limits() {
    resp::RequestLimits limits;
    limits.bulk = limits.line = limits.whole = most_bytes;
    limits.words = most_words;
    return limits;
  }

  Next answer(std::string& output) {
    const Words words = parser_.words();
    if (same(words[0], "QUIT")) {
      resp::ReplyWriter{output}.simple("OK");
      return Next::close;
    }
    std::string reply;  // apart, so that a handler that fails leaves no half of one
    try {
      resp::ReplyWriter writer{reply};
      execute(words, registry_, actions_, writer);
    } catch (const Error& refused) {
      reply.clear();
      resp::ReplyWriter{reply}.error("ERR " + refused.message());
    } catch (const std::system_error& failed) {
      reply.clear();
      resp::ReplyWriter{reply}.error(fmt::format("ERR {}", failed.what()));
    }
    output += reply;
    return Next::listen;
  }

  watch::Registry& registry_;
  const AdminActions& actions_;
  resp::RequestParser parser_;
};

}  // namespace

std::span<const AdminCommand> admin_commands() noexcept { return commands; }

std::unique_ptr<Conversation> admin_conversation(watch::Registry& registry,
                                                 const AdminActions& actions) {
  return std::make_unique<AdminConversation>(registry, actions);
}

Service admin_service(const std::string& address, watch::Registry& registry,
                      const AdminActions& actions, const OpenSocket& open) {
  const auto endpoint = config::parse_address(address);
  if (!is_local(endpoint))
    throw bad(
        fmt::format("admin: {} can be reached from other machines, and it asks for no "
                    "password: use a unix socket or 127.0.0.1",
                    address));
  return {
      .listening = open("admin", endpoint),
      .open_conversation = [&registry, &actions] { return admin_conversation(registry, actions); },
      .idle = std::chrono::minutes{10},
      .input_limit = 2 * most_bytes + 16384};
}

}  // namespace sluice::proxy::process
