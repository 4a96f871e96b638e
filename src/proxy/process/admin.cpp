#include "proxy/process/admin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>

#include "base/integer.hpp"
#include "proxy/watch/documents.hpp"
#include "resp/request_parser.hpp"
#include "resp/writer.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

using Words = std::span<const std::string_view>;

/// One request: what its handler reads and where it answers.
struct Call {
  Words words;  ///< after the command's own
  watch::Registry& registry;
  const AdminActions& actions;
  resp::ReplyWriter& reply;
};

struct AdminCommand {
  std::string_view name;       ///< upper case; may be two words
  std::string_view arguments;  ///< for HELP
  std::size_t most_arguments;
  std::string_view help;
  void (*run)(const Call&);
};

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

void stats(const Call& call) { call.reply.bulk(watch::statistics_json(call.registry.snapshot())); }

void latency_row(const Call& call, std::string_view pool, std::string_view what,
                 std::string_view name, const watch::LatencyCounts& latency) {
  call.reply.array(8);
  call.reply.bulk(pool);
  call.reply.bulk(what);
  call.reply.bulk(name);
  call.reply.integer(static_cast<std::int64_t>(latency.count()));
  for (const double share : {0.5, 0.99, 0.999, 1.0})
    call.reply.integer(latency.quantile(share).count());
}

void latency(const Call& call) {
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

void slow_log_get(const Call& call) {
  const auto entries = call.registry.slow_log(number_or(call.words, 10));
  call.reply.array(entries.size());
  for (const auto& entry : entries) {  // the first six as Redis has them
    call.reply.array(8);
    call.reply.integer(static_cast<std::int64_t>(entry.id));
    call.reply.integer(
        std::chrono::floor<std::chrono::seconds>(entry.at).time_since_epoch().count());
    call.reply.integer(entry.took.count());
    call.reply.array(2);
    call.reply.bulk(entry.command);
    call.reply.bulk(entry.key);
    call.reply.bulk(entry.client);
    call.reply.bulk("");
    call.reply.bulk(entry.pool);
    call.reply.bulk(entry.server);
  }
}

void slow_log_reset(const Call& call) {
  call.registry.reset_slow_log();
  call.reply.simple("OK");
}

void hot_keys(const Call& call) {
  const auto keys = call.registry.hot_keys(number_or(call.words, 10));
  call.reply.array(keys.size());
  for (const auto& key : keys) {
    call.reply.array(4);
    call.reply.bulk(key.key);
    call.reply.bulk(fmt::format("{:.1f}", key.rate));
    call.reply.bulk(fmt::format("{:.4f}", key.share));
    call.reply.bulk(fmt::format("{:.1f}", key.most_rate));
  }
}

void big_values(const Call& call) {
  const auto values = call.registry.big_values(number_or(call.words, 10));
  call.reply.array(values.size());
  for (const auto& value : values) {
    call.reply.array(5);
    call.reply.bulk(value.key);
    call.reply.integer(static_cast<std::int64_t>(value.bytes));
    call.reply.bulk(value.pool);
    call.reply.bulk(value.command);
    call.reply.integer(
        std::chrono::floor<std::chrono::seconds>(value.at).time_since_epoch().count());
  }
}

void clients(const Call& call) { call.reply.bulk(available(call.actions.clients)()); }
void reload(const Call& call) { call.reply.bulk(available(call.actions.reload)()); }
void upgrade(const Call& call) { call.reply.bulk(available(call.actions.upgrade)()); }
void check_config(const Call& call) { call.reply.bulk(available(call.actions.check_config)()); }
void ping(const Call& call) { call.reply.simple("PONG"); }

void drain(const Call& call) {
  available(call.actions.drain)();
  call.reply.simple("OK");
}

void log_level(const Call& call) {
  if (call.words.empty()) {
    call.reply.integer(available(call.actions.log_level)());
    return;
  }
  const auto level = number_or(call.words, 0);
  if (level > 11) throw bad("a log level is a number from 0 to 11");
  available(call.actions.set_log_level)(static_cast<int>(level));
  call.reply.simple("OK");
}

void help(const Call& call);

constexpr AdminCommand commands[] = {
    {"STATS", "", 0, "All counters and latencies, as JSON", stats},
    {"LATENCY", "[command|server]", 1,
     "Rows: pool, command or server, its name, count, p50, p99, p99.9 and most, in us", latency},
    {"SLOWLOG GET", "[n]", 1,
     "Rows: id, time, us, (command, key), client, \"\", pool, server; newest first", slow_log_get},
    {"SLOWLOG RESET", "", 0, "Forgets the slow requests", slow_log_reset},
    {"HOTKEYS", "[n]", 1,
     "Rows: key, requests a second and share of all (at least), requests a second (at most)",
     hot_keys},
    {"BIGVALUES", "[n]", 1, "Rows: key, bytes, pool, command, time; largest first", big_values},
    {"CLIENTS", "", 0, "The clients that are connected, as JSON", clients},
    {"RELOAD", "", 0, "Reads the configuration file again; refused as a whole if it is bad",
     reload},
    {"CONFIG CHECK", "", 0, "Reads the configuration file and tells what RELOAD would do",
     check_config},
    {"UPGRADE", "", 0, "Starts the binary anew and hands it the listening sockets", upgrade},
    {"DRAIN", "", 0, "Accepts no more clients, answers what is asked, ends", drain},
    {"LOGLEVEL", "[0-11]", 1, "Tells or sets the level of the log", log_level},
    {"PING", "", 0, "PONG", ping},
    {"HELP", "", 0, "Prints this table", help},
};

void help(const Call& call) {
  call.reply.array(std::size(commands));
  for (const auto& command : commands)
    call.reply.bulk(fmt::format("{} {} -- {}", command.name, command.arguments, command.help));
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
    if (rest.size() > command.most_arguments)
      throw bad(fmt::format("{} takes at most {} arguments", command.name, command.most_arguments));
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
      const Next next = parser_.words().empty() ? Next::listen : answer(output);
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

std::unique_ptr<Conversation> admin_conversation(watch::Registry& registry,
                                                 const AdminActions& actions) {
  return std::make_unique<AdminConversation>(registry, actions);
}

Service admin_service(const std::string& address, watch::Registry& registry,
                      const AdminActions& actions, const OpenSocket& open) {
  const auto endpoint = parse_endpoint(address);
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
