// What tells of the engine and its commands: INFO, CONFIG, COMMAND.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {
namespace {

std::string server_section(Context& context) {
  const auto& engine = context.engine();
  return fmt::format(
      "redis_version:7.2.0\r\nserver_name:sluice\r\nredis_mode:standalone\r\n"
      "process_id:{}\r\nrun_id:{}\r\nserver_time_usec:{}\r\nuptime_in_seconds:{}\r\n",
      ::getpid(), engine.run_id, context.now_us(),
      (context.now_us() - engine.started_us) / 1'000'000);
}

std::string stats_section(Context& context) {
  return fmt::format("total_commands_processed:{}\r\n", context.engine().commands_run);
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
};
constexpr InfoSection sections[] = {
    {"server", "Server", server_section},       {"clients", "Clients", empty_section},
    {"memory", "Memory", empty_section},        {"persistence", "Persistence", empty_section},
    {"stats", "Stats", stats_section},          {"replication", "Replication", replication_section},
    {"keyspace", "Keyspace", keyspace_section},
};

void info(Context& context, Words words, Reply& reply) {
  const auto names = words.subspan(1);
  const auto wanted = [&](std::string_view name) {
    return names.empty() || std::ranges::any_of(names, [&](std::string_view word) {
             return is_word(word, name) || is_word(word, "default") || is_word(word, "all") ||
                    is_word(word, "everything");
           });
  };
  std::string text;
  for (const auto& section : sections) {
    if (!wanted(section.name)) continue;
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
  if (words.size() % 2 == 1) return refuse_arity(reply, "config|set");
  auto& engine = context.engine();
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto refused =
        engine.configure ? engine.configure(words[i], words[i + 1]) : std::string{};
    if (!refused.empty())
      return reply.error(
          fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                      shown(words[i]), refused));
    engine.config.insert_or_assign(std::string{words[i]}, std::string{words[i + 1]});
  }
  reply.ok();
}

void config_resetstat(Context& context, Words, Reply& reply) {
  context.engine().commands_run = 0;
  reply.ok();
}

bool is_subcommand_of(const resp::CommandSpec& spec, const resp::CommandSpec& container) {
  return spec.name.size() > container.name.size() && spec.name.starts_with(container.name) &&
         spec.name[container.name.size()] == '|';
}

/// The ten elements of Redis 7; ACL categories, tips and key specifications are not in the table.
void describe(const resp::CommandSpec& spec, Reply& reply) {
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
  reply.set(0);
  reply.set(0);
  reply.set(0);
  const auto is_sub = [&](const resp::CommandSpec& other) { return is_subcommand_of(other, spec); };
  const auto all = resp::all_commands();
  reply.set(static_cast<std::size_t>(std::ranges::count_if(all, is_sub)));
  for (const auto& sub : all)
    if (is_sub(sub)) describe(sub, reply);
}

bool is_top_level(const resp::CommandSpec& spec) {
  return spec.name.find('|') == std::string_view::npos;
}

std::int64_t top_level_count() { return std::ranges::count_if(resp::all_commands(), is_top_level); }

void command(Context&, Words, Reply& reply) {
  reply.array(static_cast<std::size_t>(top_level_count()));
  for (const auto& spec : resp::all_commands())
    if (is_top_level(spec)) describe(spec, reply);
}

void command_count(Context&, Words, Reply& reply) { reply.integer(top_level_count()); }

void command_info(Context& context, Words words, Reply& reply) {
  if (words.size() == 2) return command(context, words, reply);
  reply.array(words.size() - 2);
  for (const auto& name : words.subspan(2)) {
    const auto* spec = resp::find_command(name);
    spec ? describe(*spec, reply) : reply.null_array();
  }
}

void command_list(Context&, Words, Reply& reply) {
  reply.set(static_cast<std::size_t>(top_level_count()));
  for (const auto& spec : resp::all_commands())
    if (is_top_level(spec)) reply.bulk(spec.name);
}

void command_getkeys(Context&, Words words, Reply& reply) {
  const auto asked = words.subspan(2);
  const auto* spec = resp::find_command(asked);
  if (!spec) return reply.error("ERR Invalid command specified");
  if (!spec->arity_fits(asked.size()))
    return reply.error("ERR Invalid number of arguments specified for command");
  std::vector<std::size_t> positions;
  if (!resp::keys_of(*spec, asked, positions))
    return reply.error("ERR Invalid arguments specified for command");
  if (positions.empty()) return reply.error("ERR The command has no key arguments");
  reply.array(positions.size());
  for (const auto place : positions) reply.bulk(asked[place]);
}

/// The table holds no descriptions: the names alone.
void command_docs(Context&, Words words, Reply& reply) {
  std::vector<std::string_view> names;
  for (const auto& name : words.subspan(2))
    if (const auto* spec = resp::find_command(name)) names.push_back(spec->name);
  reply.map(names.size());
  for (const auto& name : names) reply.bulk(name), reply.map(0);
}

constexpr CommandRow rows[] = {
    {"command", command},           {"command|count", command_count},
    {"command|docs", command_docs}, {"command|getkeys", command_getkeys},
    {"command|info", command_info}, {"command|list", command_list},
    {"config|get", config_get},     {"config|resetstat", config_resetstat},
    {"config|set", config_set},     {"info", info},
};

}  // namespace

CommandRows info_commands() noexcept { return rows; }

}  // namespace sluice::engine
