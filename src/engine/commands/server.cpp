// The engine as a server: PING, TIME, databases, publishing, INFO, CONFIG, COMMAND.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/core/events.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {
namespace {

void ping(Context&, Words words, Reply& reply) {
  if (words.size() > 2) refuse_arity("ping");
  words.size() == 2 ? reply.bulk(words[1]) : reply.simple("PONG");
}

void echo(Context&, Words words, Reply& reply) { reply.bulk(words[1]); }

void time(Context& context, Words, Reply& reply) {
  reply.array(2);
  reply.bulk(IntegerText{context.now_us() / 1'000'000});
  reply.bulk(IntegerText{context.now_us() % 1'000'000});
}

void select(Context& context, Words words, Reply& reply) {
  context.session().database = read_database(words[1]);
  reply.ok();
}

void swapdb(Context& context, Words words, Reply& reply) {
  const int one = read_database(words[1], "ERR invalid first DB index");
  const int other = read_database(words[2], "ERR invalid second DB index");
  context.engine().swap_databases(one, other);
  context.signal_all();
  context.changed();
  reply.ok();
}

/// ASYNC and SYNC are the same here: the memory is given back before the reply.
void check_flush(Words words) {
  const bool good =
      words.size() == 1 ||
      (words.size() == 2 && (is_word(words[1], "async") || is_word(words[1], "sync")));
  if (!good) refuse(syntax_error);
}

void flushdb(Context& context, Words words, Reply& reply) {
  check_flush(words);
  context.keys().clear();
  context.changed();
  reply.ok();
}

void flushall(Context& context, Words words, Reply& reply) {
  check_flush(words);
  for (int database = 0; database < Engine::databases; ++database)
    context.engine().keyspace(database).clear();
  context.changed();
  reply.ok();
}

template <bool sharded>
void publish(Context& context, Words words, Reply& reply) {
  reply.count(context.publish(words[1], words[2], sharded));
}

void pubsub_channels(Context& context, Words words, Reply& reply) {
  auto channels =
      context.engine().channels ? context.engine().channels() : std::vector<std::string>{};
  if (words.size() > 2)
    std::erase_if(channels,
                  [&](const std::string& channel) { return !glob_matches(words[2], channel); });
  reply.array(channels.size());
  for (const auto& channel : channels) reply.bulk(channel);
}

void pubsub_numsub(Context& context, Words words, Reply& reply) {
  const auto& receivers = context.engine().receivers;
  reply.array(2 * (words.size() - 2));
  for (const auto& channel : words.subspan(2)) {
    reply.bulk(channel);
    reply.count(receivers ? receivers(channel, false) : 0);
  }
}

/// There are no replicas.
void wait(Context&, Words words, Reply& reply) {
  read_integer(words[1]);
  const auto timeout_ms = read_integer(words[2], "ERR timeout is not an integer or out of range");
  timeout_ms < 0 ? reply.error("ERR timeout is negative") : reply.integer(0);
}

/// Each reply waits until its writes are in the log; where it is synced always, they are on disk.
void waitaof(Context& context, Words words, Reply& reply) {
  const auto local =
      read_integer_between(words[1], 0, 1, "ERR value is out of range, value must between 0 and 1");
  read_integer_between(words[2], 0, largest_integer, not_positive);
  if (read_integer(words[3], "ERR timeout is not an integer or out of range") < 0)
    return reply.error("ERR timeout is negative");
  const auto& engine = context.engine();
  if (local > 0 && !engine.start_rewrite)
    return reply.error(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  const auto sync = engine.config.find("appendfsync");
  reply.array(2);
  reply.integer(sync != engine.config.end() && sync->second == "always" ? 1 : 0);
  reply.integer(0);
}

void role(Context&, Words, Reply& reply) {
  reply.array(3);
  reply.bulk("master");
  reply.integer(0);
  reply.array(0);
}

void bgrewriteaof(Context& context, Words, Reply& reply) {
  const auto& start = context.engine().start_rewrite;
  if (!start) return reply.error("ERR this Store lives in memory alone: it has no file to rewrite");
  start();
  reply.simple("Background append only file rewriting started");
}

// --- what tells of the engine ---

std::string server_section(Context& context) {
  const auto& engine = context.engine();
  return fmt::format(
      "redis_version:7.2.0\r\nserver_name:sluice\r\nredis_mode:standalone\r\n"
      "process_id:{}\r\nrun_id:{}\r\nserver_time_usec:{}\r\nuptime_in_seconds:{}\r\n",
      ::getpid(), engine.run_id, context.now_us(),
      (context.now_us() - engine.started_us) / 1'000'000);
}

std::string memory_section(Context& context) {
  const auto memory = ::mallinfo2();
  return fmt::format("used_memory:{}\r\nnumber_of_cached_scripts:{}\r\n",
                     memory.uordblks + memory.hblkhd, context.engine().scripts().size());
}

std::string persistence_section(Context& context) {
  return fmt::format("loading:0\r\nrdb_changes_since_last_save:{}\r\n",
                     context.engine().changes_made);
}

std::string stats_section(Context& context) {
  const auto& engine = context.engine();
  std::uint64_t errors = 0;
  for (const auto& [kind, count] : engine.errors) errors += count;
  return fmt::format(
      "total_commands_processed:{}\r\nexpired_keys:{}\r\ntotal_error_replies:{}\r\n",
      engine.commands_run, engine.keys_expired, errors);
}

/// How long commands take is not measured: that would cost each of them as much as a lookup.
std::string commandstats_section(Context& context) {
  std::string text;
  for (const auto& command : context.engine().commands()) {
    const auto& counts = context.engine().counts[command.spec->index];
    if (counts.calls + counts.rejected + counts.failed > 0)
      text += fmt::format(
          "cmdstat_{}:calls={},usec=0,usec_per_call=0.00,rejected_calls={},failed_calls={}\r\n",
          command.spec->name, counts.calls, counts.rejected, counts.failed);
  }
  return text;
}

std::string errorstats_section(Context& context) {
  std::string text;
  for (const auto& [kind, count] : context.engine().errors)
    text += fmt::format("errorstat_{}:count={}\r\n", kind, count);
  return text;
}

std::string replication_section(Context&) { return "role:master\r\nconnected_slaves:0\r\n"; }

std::string keyspace_section(Context& context) {
  std::string text;
  for (int database = 0; database < Engine::databases; ++database) {
    const auto& keys = context.engine().keyspace(database);
    if (keys.size() > 0)
      text += fmt::format("db{}:keys={},expires={},avg_ttl=0\r\n", database, keys.size(),
                          keys.expiring());
  }
  return text;
}

std::string empty_section(Context&) { return {}; }

struct InfoSection {
  std::string_view name;
  std::string_view title;
  std::string (*text)(Context&);
  bool is_default = true;
};
constexpr InfoSection sections[] = {
    {"server", "Server", server_section},       {"clients", "Clients", empty_section},
    {"memory", "Memory", memory_section},       {"persistence", "Persistence", persistence_section},
    {"stats", "Stats", stats_section},          {"replication", "Replication", replication_section},
    {"commandstats", "Commandstats", commandstats_section, false},
    {"errorstats", "Errorstats", errorstats_section}, {"keyspace", "Keyspace", keyspace_section},
};

void info(Context& context, Words words, Reply& reply) {
  const auto names = words.subspan(1);
  const auto wanted = [&](const InfoSection& section) {
    return (names.empty() && section.is_default) ||
           std::ranges::any_of(names, [&](std::string_view word) {
             return is_word(word, section.name) || is_word(word, "all") ||
                    is_word(word, "everything") ||
                    (is_word(word, "default") && section.is_default);
           });
  };
  std::string text;
  for (const auto& section : sections) {
    if (!wanted(section)) continue;
    if (!text.empty()) text += "\r\n";
    text += fmt::format("# {}\r\n{}", section.title, section.text(context));
    if (context.engine().more_info) context.engine().more_info(section.name, text);
  }
  reply.verbatim(text);
}

void config_get(Context& context, Words words, Reply& reply) {
  std::vector<std::pair<std::string_view, std::string_view>> found;
  for (const auto& [name, value] : context.engine().config)
    if (std::ranges::any_of(words.subspan(2),
                            [&](std::string_view pattern) { return glob_matches(pattern, name); }))
      found.emplace_back(name, value);
  reply.map(found.size());
  for (const auto& [name, value] : found) reply.bulk(name), reply.bulk(value);
}

/// A parameter that `configure` does not know is kept and has no effect.
void config_set(Context& context, Words words, Reply& reply) {
  if (words.size() % 2 == 1) refuse_arity("config|set");
  auto& engine = context.engine();
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto refused =
        engine.configure ? engine.configure(words[i], words[i + 1]) : std::string{};
    if (is_word(words[i], "notify-keyspace-events")) {
      const auto kinds = read_event_kinds(words[i + 1]);
      if (!kinds)
        return reply.error(
            "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - "
            "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
      engine.notified_events = *kinds;
      engine.config.insert_or_assign("notify-keyspace-events", event_letters(*kinds));
      continue;
    }
    if (!refused.empty())
      return reply.error(
          fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                      shown(words[i]), refused));
    engine.config.insert_or_assign(std::string{words[i]}, std::string{words[i + 1]});
  }
  reply.ok();
}

void config_resetstat(Context& context, Words, Reply& reply) {
  auto& engine = context.engine();
  engine.commands_run = engine.keys_expired = 0;
  std::ranges::fill(engine.counts, Engine::CommandCounts{});
  engine.errors.clear();
  reply.ok();
}

void lolwut(Context&, Words, Reply& reply) {
  reply.verbatim("Sluice, which speaks as Redis ver. 7.2.0\n");
}

// --- COMMAND tells what this engine answers, not all that its table knows ---

using Specs = std::vector<const resp::CommandSpec*>;

bool is_subcommand(const resp::CommandSpec& spec) {
  return spec.name.find('|') != std::string_view::npos;
}

/// All that is answered, with subcommands. Not SELECT: the callers share a connection, and only a
/// script can select.
Specs answered(const Engine& engine) {
  Specs specs;
  for (const auto& command : engine.commands())
    if (command.is_offered() && !command.spec->has(resp::flag_stateful))
      specs.push_back(command.spec);
  return specs;
}

Specs top_level(const Engine& engine) {
  auto specs = answered(engine);
  std::erase_if(specs, [](const auto* spec) { return is_subcommand(*spec); });
  return specs;
}

Specs subcommands_of(const Engine& engine, const resp::CommandSpec& container) {
  auto specs = answered(engine);
  std::erase_if(specs, [&](const auto* spec) {
    return !is_subcommand(*spec) || spec->name.substr(0, spec->name.find('|')) != container.name;
  });
  return specs;
}

const resp::CommandSpec* answered(const Engine& engine, std::string_view name) {
  const auto* command = engine.offered(resp::find_command(name));
  return command && !command->spec->has(resp::flag_stateful) ? command->spec : nullptr;
}

/// The ten elements of Redis 7; ACL categories, tips and key specifications are not in the table.
void describe(const Engine& engine, const resp::CommandSpec& spec, Reply& reply) {
  reply.array(10);
  reply.bulk(spec.name);
  reply.integer(spec.arity);
  std::vector<std::string_view> flags;
  for (const auto& [flag, name] : resp::flag_names())
    if (spec.has(flag)) flags.push_back(name);
  reply.set(flags.size());
  for (const auto flag : flags) reply.simple(flag);
  reply.integer(spec.first_key);
  reply.integer(spec.last_key);
  reply.integer(spec.key_step);
  for (int unknown = 0; unknown < 3; ++unknown) reply.set(0);
  const auto subcommands = subcommands_of(engine, spec);
  reply.set(subcommands.size());
  for (const auto* sub : subcommands) describe(engine, *sub, reply);
}

void command_count(Context& context, Words, Reply& reply) {
  reply.count(top_level(context.engine()).size());
}

void command_info(Context& context, Words words, Reply& reply) {
  const auto& engine = context.engine();
  if (words.size() <= 2) {
    const auto specs = top_level(engine);
    reply.array(specs.size());
    for (const auto* spec : specs) describe(engine, *spec, reply);
    return;
  }
  reply.array(words.size() - 2);
  for (const auto& name : words.subspan(2)) {
    const auto* spec = answered(engine, name);
    spec ? describe(engine, *spec, reply) : reply.null_array();
  }
}

/// With subcommands, as Redis's.
void command_list(Context& context, Words words, Reply& reply) {
  auto specs = answered(context.engine());
  if (words.size() > 2) {
    if (words.size() != 5 || !is_word(words[2], "filterby") || !is_word(words[3], "pattern"))
      return reply.error(syntax_error);
    std::erase_if(specs, [&](const auto* spec) { return !glob_matches(words[4], spec->name); });
  }
  reply.set(specs.size());
  for (const auto* spec : specs) reply.bulk(spec->name);
}

void command_getkeys(Context& context, Words words, Reply& reply) {
  const auto asked = words.subspan(2);
  const auto* command = context.engine().offered(resp::find_command(asked));
  if (!command) return reply.error("ERR Invalid command specified");
  if (!command->spec->arity_fits(asked.size()))
    return reply.error("ERR Invalid number of arguments specified for command");
  std::vector<std::size_t> positions;
  if (!resp::keys_of(*command->spec, asked, positions))
    return reply.error("ERR Invalid arguments specified for command");
  if (positions.empty()) return reply.error("ERR The command has no key arguments");
  reply.array(positions.size());
  for (const auto place : positions) reply.bulk(asked[place]);
}

/// The table holds no descriptions: the names alone.
void document(const Engine& engine, const Specs& specs, Reply& reply) {
  reply.map(specs.size());
  for (const auto* spec : specs) {
    reply.bulk(spec->name);
    const auto subcommands = subcommands_of(engine, *spec);
    reply.map(subcommands.empty() ? 0 : 1);
    if (subcommands.empty()) continue;
    reply.bulk("subcommands");
    document(engine, subcommands, reply);
  }
}

void command_docs(Context& context, Words words, Reply& reply) {
  const auto& engine = context.engine();
  auto specs = words.size() > 2 ? Specs{} : top_level(engine);
  for (const auto& name : words.subspan(2))
    if (const auto* spec = answered(engine, name)) specs.push_back(spec);
  document(engine, specs, reply);
}

/// X HELP: the subcommands that are offered.
void help(Context& context, Words words, Reply& reply) {
  const auto& engine = context.engine();
  const auto& container = *resp::find_command(words[0]);
  const auto specs = subcommands_of(engine, container);
  reply.array(specs.size() + 1);
  reply.simple(fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                           upper(container.name)));
  for (const auto* spec : specs) reply.simple(upper(spec->name.substr(container.name.size() + 1)));
}

}  // namespace

CommandRows server_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"bgrewriteaof", bgrewriteaof},
      {"command", command_info},
      {"command|count", command_count},
      {"command|docs", command_docs},
      {"command|getkeys", command_getkeys},
      {"command|help", help},
      {"command|info", command_info},
      {"command|list", command_list},
      {"config|get", config_get},
      {"config|help", help},
      {"config|resetstat", config_resetstat},
      {"config|set", config_set},
      {"echo", echo},
      {"flushall", flushall},
      {"flushdb", flushdb},
      {"function|help", help},
      {"info", info},
      {"lolwut", lolwut},
      {"memory|help", help},
      {"object|help", help},
      {"ping", ping},
      {"publish", publish<false>},
      {"pubsub|channels", pubsub_channels},
      {"pubsub|help", help},
      {"pubsub|numsub", pubsub_numsub},
      {"role", role},
      {"script|help", help},
      {"select", select},
      {"spublish", publish<true>},
      {"swapdb", swapdb},
      {"time", time},
      {"wait", wait},
      {"waitaof", waitaof},
      {"xgroup|help", help},
      {"xinfo|help", help},
  };
  return rows;
}

}  // namespace sluice::engine
