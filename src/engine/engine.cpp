#include "engine/engine.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/random.hpp"
#include "engine/command.hpp"
#include "engine/keyspace.hpp"
#include "engine/object.hpp"
#if __has_include("engine/scripts.hpp")
#include "engine/scripts.hpp"
#endif
#include "resp/command_table.hpp"

namespace sluice::engine {
#if !__has_include("engine/scripts.hpp")
class ScriptRunner {
 public:
  explicit ScriptRunner(Engine&) {}
};
#endif
namespace {

constexpr void (*families[])(Handlers&) = {
    add_string_commands,           add_string_set_commands,   add_bit_commands,
    add_bitfield_commands,         add_key_commands,          add_expiry_commands,
    add_scan_commands,             add_hash_commands,         add_list_commands,
    add_list_move_commands,        add_set_commands,          add_set_algebra_commands,
    add_sorted_set_commands,       add_sorted_set_range_commands,
    add_sorted_set_store_commands, add_sorted_set_pop_commands,
    add_stream_commands,           add_server_commands,       add_info_commands,
    add_script_commands,
};

std::string upper(std::string_view text) {
  std::string raised{text};
  for (char& c : raised)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  return raised;
}

/// As Redis: the name and the beginning of the arguments, 128 bytes of each.
std::string unknown_command(Words words) {
  std::string args;
  for (const auto& word : words.subspan(1)) {
    if (args.size() >= 128) break;
    args += fmt::format("'{}' ", shown(word, 128 - args.size()));
  }
  return fmt::format("ERR unknown command '{}', with args beginning with: {}", shown(words[0]), args);
}

}  // namespace

void Handlers::add(std::string_view name, Handler handler) {
  const auto* spec = resp::find_command(name);
  if (!spec) throw std::logic_error{fmt::format("the command table has no '{}'", name)};
  slots_[spec->index] = handler;
}

Engine::Engine() : Engine(random_below(std::numeric_limits<std::uint64_t>::max())) {}

Engine::Engine(std::uint64_t seed) : dice(seed) {
  for (auto& keyspace : keyspaces_) keyspace = std::make_unique<Keyspace>(loading);
  handlers_.resize(resp::all_commands().size());
  Handlers handlers{handlers_};
  for (const auto add_family : families) add_family(handlers);
  for (int i = 0; i < 40; ++i) run_id += "0123456789abcdef"[dice.below(16)];
  scripts_ = std::make_unique<ScriptRunner>(*this);
}

Engine::~Engine() = default;

/// The command that some words mean.
struct Engine::Chosen {
  const resp::CommandSpec* spec = nullptr;  ///< null: there is none
  Handler handler = nullptr;                ///< null: not offered, or its subcommand is unknown
  bool container = false;                   ///< subcommands exist, and this is none of them
};

Engine::Chosen Engine::choose(Words words) const {
  Chosen chosen;
  if (words.empty()) return chosen;
  chosen.spec = resp::find_command(words[0]);
  if (!chosen.spec) return chosen;
  chosen.handler = handlers_[chosen.spec->index];
  if (!chosen.spec->has(resp::flag_container) || words.size() == 1) return chosen;
  const auto* sub = resp::find_subcommand(*chosen.spec, words[1]);
  if (!sub) return {chosen.spec, nullptr, true};
  const auto handler = handlers_[sub->index];
  return {sub, handler ? handler : chosen.handler, false};
}

void Engine::refuse(const Context& context, const Chosen& chosen, Words words, Reply& reply) const {
  if (words.empty()) return reply.error("ERR empty command");
  if (chosen.container)
    return reply.error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", shown(words[1]),
                                   upper(chosen.spec->name)));
  if (!chosen.spec || !chosen.handler) {
    if (context.in_script()) return reply.error("ERR Unknown Redis command called from script");
    return reply.error(unknown_command(words));
  }
  if (context.in_script()) return reply.error("ERR Wrong number of args calling Redis command from script");
  refuse_arity(reply, chosen.spec->name);
}

void Engine::execute(Context& context, Words words, Reply& reply) { call(context, words, reply); }

void Engine::call(Context& context, Words words, Reply& reply) {
  const auto chosen = choose(words);
  if (!chosen.handler || !chosen.spec->arity_fits(words.size())) return refuse(context, chosen, words, reply);
  if (context.in_script() && chosen.spec->has(resp::flag_noscript))
    return reply.error("ERR This Redis command is not allowed from script");

  const auto changes_before = context.changes();
  const auto effects_before = context.effects().size();
  const int database = context.session().database;
  ++commands_run;
  if (started_us == 0) started_us = context.now_us();
  chosen.handler(context, words, reply);

  const bool replaced = context.take_replaced();
  if (keyspaces_[static_cast<std::size_t>(database)]->has_expired()) {
    // The DELs of keys that the command found past their time come before its own effect, but after its SELECT.
    auto& effects = context.effects();
    const bool selected = effects.size() > effects_before && effects[effects_before].front() == "SELECT";
    const auto place = effects_before + (selected ? 1 : 0);
    const auto own = effects.size() - place;
    log_expired(context, database);
    const auto begin = effects.begin() + static_cast<std::ptrdiff_t>(place);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(own), effects.end());
  }
  if (!replaced && context.changes() != changes_before) log(context, database, words);
}

void Engine::log(Context& context, int database, Words command) {
  if (!keeps_log || loading) return;
  if (log_database != database) {
    log_database = database;
    context.effects().push_back({"SELECT", std::to_string(database)});
  }
  context.effects().emplace_back(command.begin(), command.end());
}

void Engine::log_expired(Context& context, int database) {
  for (const auto& key : keyspaces_[static_cast<std::size_t>(database)]->take_expired()) {
    const std::string_view words[] = {"DEL", key};
    log(context, database, words);
  }
}

std::size_t Engine::expire_some(Context& context, std::size_t most) {
  std::size_t expired = 0;
  for (int database = 0; database < databases && expired < most; ++database) {
    auto& keys = keyspace(database);
    const auto before = expired;
    while (expired < most && keys.expire_first(context.now_ms())) ++expired;
    if (expired != before) log_expired(context, database);
  }
  return expired;
}

void Engine::swap_databases(int one, int other) noexcept {
  std::swap(keyspaces_[static_cast<std::size_t>(one)], keyspaces_[static_cast<std::size_t>(other)]);
}

}  // namespace sluice::engine
