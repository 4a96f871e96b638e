// PFADD, PFCOUNT, PFMERGE: how many different elements there were, about (types/hyperloglog.hpp).
#include <memory>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/types/hyperloglog.hpp"

namespace sluice::engine {
namespace {

using Registers = HyperLogLog::Registers;

constexpr std::uint64_t steps_of_all = HyperLogLog::registers / 64;

/// Refuses what is none. Null: no such key.
std::string* find_count(Context& context, std::string_view key) {
  auto* value = find_as<std::string>(context, key);
  if (value && !HyperLogLog::is_one(*value))
    refuse("WRONGTYPE Key is not a valid HyperLogLog string value.");
  return value;
}

void check(const HyperLogLog& count) {
  if (count.is_damaged()) refuse("INVALIDOBJ Corrupted HLL object detected");
}

std::string& count_or_new(Context& context, std::string_view key, std::string* found) {
  if (found) return *found;
  return *as<std::string>(context.keys().put(key, HyperLogLog::none()));
}

void pfadd(Context& context, Words words, Reply& reply) {
  auto* found = find_count(context, words[1]);
  if (found && words.size() > 2) check(HyperLogLog{*found});
  HyperLogLog count{count_or_new(context, words[1], found)};
  bool changed = !found;
  for (const auto& element : words.subspan(2)) {
    context.spend(1);
    if (count.add(element, context.undo())) changed = true;
  }
  if (changed) {
    count.forget_count(context.undo());
    context.changed();
  }
  reply.integer(changed ? 1 : 0);
}

/// All the keys' registers together. `has_dense`: one of them is dense.
std::unique_ptr<Registers> registers_of(Context& context, Words keys, bool& has_dense) {
  auto all = std::make_unique<Registers>();
  for (const auto& key : keys) {
    auto* found = find_count(context, key);
    if (!found) continue;
    const HyperLogLog count{*found};
    check(count);
    context.spend(steps_of_all);
    has_dense = has_dense || count.is_dense();
    count.raise(*all);
  }
  return all;
}

/// The count is not kept in the value (docs/decisions/0057-a-count-is-only-read.md).
void pfcount(Context& context, Words words, Reply& reply) {
  bool has_dense = false;
  if (words.size() == 2)
    if (auto* found = find_count(context, words[1]))
      if (const auto known = HyperLogLog{*found}.known_count()) return reply.count(*known);
  reply.count(HyperLogLog::count_of(*registers_of(context, words.subspan(1), has_dense)));
}

void pfmerge(Context& context, Words words, Reply& reply) {
  bool is_dense = false;
  const auto all = registers_of(context, words.subspan(1), is_dense);
  auto& value = count_or_new(context, words[1], find_count(context, words[1]));
  HyperLogLog merged{value};
  expect_change(context.undo(), value);
  if (context.undo()) context.undo()->wrote(value.size());
  if (is_dense) merged.become_dense(nullptr);
  for (std::size_t i = 0; i < all->size(); ++i)
    if ((*all)[i] > 0) merged.raise_one(i, (*all)[i], nullptr);
  merged.forget_count(nullptr);
  context.changed();
  reply.ok();
}

}  // namespace

CommandRows distinct_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"pfadd", pfadd}, {"pfcount", pfcount}, {"pfmerge", pfmerge}};
  return rows;
}

}  // namespace sluice::engine
