#include "engine/core/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "engine/core/command.hpp"
#include "engine/core/events.hpp"
#include "engine/core/keyspace.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {
namespace {

/// As Redis: the name and the beginning of the arguments, 128 bytes of each.
std::string unknown_command(Words words) {
  std::string args;
  for (const auto& word : words.subspan(1)) {
    if (args.size() >= 128) break;
    args += fmt::format("'{}' ", shown(word, 128 - args.size()));
  }
  return fmt::format("ERR unknown command '{}', with args beginning with: {}", shown(words[0]),
                     args);
}

}  // namespace

void Engine::add(CommandRows rows) {
  for (const auto& row : rows) {
    const auto* spec = resp::find_command(row.name);
    if (!spec) throw std::logic_error{fmt::format("the command table has no '{}'", row.name)};
    commands_[spec->index].handler = row.handler;
    if (const auto bar = row.name.find('|'); bar != row.name.npos)
      commands_[resp::find_command(row.name.substr(0, bar))->index].has_subcommands = true;
  }
}

Engine::Engine(std::uint64_t seed) : rng(seed) {
  for (auto& keyspace : keyspaces_)
    keyspace = std::make_unique<Keyspace>(loading, soonest_ms_, undo_);
  commands_.reserve(resp::all_commands().size());
  counts.resize(resp::all_commands().size());
  for (const auto& spec : resp::all_commands()) commands_.push_back({&spec});
  for (int i = 0; i < 40; ++i) run_id += "0123456789abcdef"[rng.below(16)];
}

Engine::~Engine() = default;

const Engine::Command* Engine::command_named(std::string_view name) const noexcept {
  const auto* spec = resp::find_command(name);
  return spec ? &commands_[spec->index] : nullptr;
}

const Engine::Command* Engine::subcommand_named(const Command& container,
                                                std::string_view name) const noexcept {
  const auto* spec = resp::find_subcommand(*container.spec, name);
  return spec ? &commands_[spec->index] : nullptr;
}

const Engine::Command* Engine::offered(const resp::CommandSpec* spec) const noexcept {
  return spec && commands_[spec->index].is_offered() ? &commands_[spec->index] : nullptr;
}

void Engine::execute(Context& context, Words words, Reply& reply) {
  if (words.empty()) return reply.error("ERR empty command");
  const auto* command = offered(resp::find_command(words[0]));
  if (!command) return reply.error(unknown_command(words));
  if (command->has_subcommands && words.size() > 1) {
    const auto& container = *command->spec;
    command = offered(resp::find_subcommand(container, words[1]));
    if (!command)
      return reply.error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", shown(words[1]),
                                     upper(container.name)));
  }
  const auto& spec = *command->spec;
  if (!spec.arity_fits(words.size())) return reply.error(wrong_arity(spec.name));
  run(context, *command, words, reply);
}

void Engine::run(Context& context, const Command& command, Words words, Reply& reply) {
  if (before_write && command.spec->has(resp::flag_write))
    if (const auto refusal = before_write(*command.spec, words)) return reply.error(*refusal);

  const auto changes_before = context.changes();
  const auto effects_before = context.effects().size();
  const auto blocks_before = context.blocks().size();
  const int database = context.session().database;
  ++commands_run;
  if (started_us == 0) started_us = context.now_us();
  std::optional<EventWatch> watch;
  if (notified_events != 0 && command.spec->has(resp::flag_write))
    watch.emplace(context, *command.spec, words);
  try {
    command.handler(context, words, reply);
  } catch (const Refusal& refusal) {
    reply.error(refusal.error);
  }
  // What waits is run again.
  if (context.blocks().size() == blocks_before) ++counts[command.spec->index].calls;
  if (watch && context.changes() != changes_before) watch->tell(*command.spec, words);

  const bool replaced = context.take_replaced();
  if (keyspace(database).has_expired()) {
    // The DELs of keys that the command found expired come before its own effect, but after its
    // SELECT.
    auto& effects = context.effects();
    const bool selected =
        effects.size() > effects_before && effects[effects_before].front() == "SELECT";
    const auto place = effects_before + (selected ? 1 : 0);
    const auto own = effects.size() - place;
    log_expired(context, database);
    const auto begin = effects.begin() + static_cast<std::ptrdiff_t>(place);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(own), effects.end());
  }
  // EVAL writes nothing itself; its commands have logged their effects.
  if (!replaced && context.changes() != changes_before && command.spec->has(resp::flag_write))
    log(context, database, words);
}

void Engine::note_error(const resp::CommandSpec* spec, bool ran, std::string_view error) {
  constexpr std::size_t most_kinds = 128;  // scripts make up their own
  if (spec) ++(ran ? counts[spec->index].failed : counts[spec->index].rejected);
  const auto kind = error.substr(0, error.find_first_of(" \r"));
  const auto found = errors.find(kind);
  if (found != errors.end())
    ++found->second;
  else if (errors.size() < most_kinds)
    errors.emplace(kind, 1);
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
  for (const auto& key : keyspace(database).take_expired()) {
    ++keys_expired;
    log(context, database, std::array<std::string_view, 2>{"DEL", key});
    if (notified_events != 0) tell_event(context, database, event_expired, "expired", key);
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

void Engine::find_soonest_expiry() noexcept {
  soonest_ms_ = no_expiry;
  for (const auto& keyspace : keyspaces_) {
    const auto first = keyspace->first_expiry_ms();
    if (first != Keyspace::never) soonest_ms_ = std::min(soonest_ms_, first);
  }
}

namespace {

void swap_back(Undo&, Undo::Step& step, Undo::Way) {
  static_cast<Engine*>(step.target)
      ->swap_databases(static_cast<int>(step.numbers[0]), static_cast<int>(step.numbers[1]));
}

}  // namespace

void Engine::swap_databases(int one, int other) noexcept {
  if (undo_) {
    undo_->expect();
    undo_->add(swap_back, this, nullptr,
               {static_cast<std::uint64_t>(one), static_cast<std::uint64_t>(other)});
  }
  std::swap(keyspaces_[static_cast<std::size_t>(one)], keyspaces_[static_cast<std::size_t>(other)]);
}

void Engine::take_back() noexcept {
  undo_ = nullptr;
  steps_.take_back();
  rng = rng_before_;
  for (const auto& keyspace : keyspaces_) static_cast<void>(keyspace->take_expired());
}

// --- Context ---

Undo* Context::undo() noexcept { return engine_.undo(); }

Context::Mark Context::mark() const noexcept {
  return {changes_,          effects_.size(), signalled_.size(),   block_.size(),
          published_.size(), replaced_,       engine_.log_database};
}

void Context::return_to(const Mark& mark) noexcept {
  const auto cut = [](auto& items, std::size_t size) {
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(size), items.end());
  };
  changes_ = mark.changes;
  cut(effects_, mark.effects);
  cut(signalled_, mark.signalled);
  cut(block_, mark.blocks);
  cut(published_, mark.published);
  replaced_ = mark.replaced;
  engine_.log_database = mark.log_database;
}

Keyspace& Context::keys() noexcept { return engine_.keyspace(session_.database); }

void Context::log_instead(Words command) {
  engine_.log(*this, session_.database, command);
  replaced_ = true;
}

std::size_t Context::publish(std::string_view channel, std::string_view payload, bool sharded) {
  const std::size_t receivers = engine_.receivers ? engine_.receivers(channel, sharded) : 0;
  if (engine_.receivers && receivers == 0) return 0;  // a later listener does not get this message
  published_.push_back({std::string{channel}, std::string{payload}, sharded});
  return receivers;
}

}  // namespace sluice::engine
