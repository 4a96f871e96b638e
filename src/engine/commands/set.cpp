// Sets, one at a time and combined.

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void sadd(Context& context, Words words, Set* found, Reply& reply) {
  auto& set = value_or_new(context, words[1], found);
  std::size_t added = 0;
  for (const auto& member : words.subspan(2)) added += set.add(member, context.undo()) ? 1U : 0U;
  context.changed(added);
  reply.count(added);
}

void sismember(Context&, Words words, Set* set, Reply& reply) {
  reply.integer(set && set->contains(words[2]) ? 1 : 0);
}

void smismember(Context&, Words words, Set* set, Reply& reply) {
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) reply.integer(set && set->contains(member) ? 1 : 0);
}

void smembers(Context&, Words, Set* set, Reply& reply) {
  reply.set(set ? set->size() : 0);
  if (set) set->for_each([&](std::string_view member) { reply.bulk(member); });
}

void smove(Context& context, Words words, Reply& reply) {
  const auto& member = words[3];
  auto* from = find_as<Set>(context, words[1]);
  if (!from) return reply.integer(0);
  auto* to = find_as<Set>(context, words[2]);
  if (from == to) return reply.integer(from->contains(member) ? 1 : 0);
  if (!from->erase(member, context.undo())) return reply.integer(0);
  drop_if_empty(context, words[1], *from);
  if (!value_or_new(context, words[2], to).add(member, context.undo()))
    context.log_instead({"SREM", words[1], member});  // the other key has not changed
  context.changed();
  reply.integer(1);
}

void remove_picked(Context& context, std::string_view key, Set& set,
                   const std::vector<std::string>& picked) {
  std::vector<std::string_view> log{"SREM", key};
  for (const auto& member : picked) {
    set.erase(member, context.undo());
    log.push_back(member);
  }
  drop_if_empty(context, key, set);
  if (picked.empty()) return;
  context.changed(picked.size());
  context.log_instead(log);
}

void spop(Context& context, Words words, Reply& reply) {
  const bool several = words.size() == 3;
  const auto [set, count] = find_to_pop<Set>(context, words);
  if (!set) return several ? reply.set(0) : reply.null();
  auto& rng = context.engine().rng;
  const auto picked = several ? pick(context, *set, static_cast<std::int64_t>(count))
                              : std::vector{set->random(rng)};
  if (several) reply.set(picked.size());
  for (const auto& member : picked) reply.bulk(member);
  remove_picked(context, words[1], *set, picked);
}

void srandmember(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) return reply.error(syntax_error);
  const auto count = words.size() == 3 ? read_count(words[2]) : 0;
  auto* set = find_as<Set>(context, words[1]);
  auto& rng = context.engine().rng;
  if (words.size() == 2) return set ? reply.bulk(set->random(rng)) : reply.null();
  if (!set) return reply.array(0);
  const auto picked = pick(context, *set, count);
  reply.array(picked.size());
  for (const auto& member : picked) reply.bulk(member);
}

// --- intersections, unions, differences ---

/// The sets at some keys, null where there is no such key.
std::vector<const Set*> find_sets(Context& context, Words keys) {
  std::vector<const Set*> sets;
  for (const auto& key : keys) sets.push_back(find_as<Set>(context, key));
  return sets;
}

/// Visits the members of the intersection until `visit` says false. Starts from the smallest set.
template <class Visit>
void intersect(Context& context, std::vector<const Set*> sets, Visit&& visit) {
  if (std::ranges::find(sets, nullptr) != sets.end()) return;
  std::ranges::sort(sets, {}, &Set::size);
  bool more = true;
  sets.front()->for_each([&](std::string_view member) {
    context.spend(sets.size());
    if (more && std::all_of(sets.begin() + 1, sets.end(),
                            [&](const Set* set) { return set->contains(member); }))
      more = visit(member);
  });
}

std::unique_ptr<Set> intersection(Context& context, const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  intersect(context, sets,
            [&](std::string_view member) { return result->add(member, nullptr), true; });
  return result;
}

std::unique_ptr<Set> union_of(Context& context, const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  for (const auto* set : sets)
    if (set)
      set->for_each([&](std::string_view member) {
        context.spend(1);
        result->add(member, nullptr);
      });
  return result;
}

std::unique_ptr<Set> difference(Context& context, const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  if (!sets.front()) return result;
  sets.front()->for_each([&](std::string_view member) {
    context.spend(sets.size());
    const auto has = [&](const Set* set) { return set && set->contains(member); };
    if (std::none_of(sets.begin() + 1, sets.end(), has)) result->add(member, nullptr);
  });
  return result;
}

using Operation = std::unique_ptr<Set> (*)(Context&, const std::vector<const Set*>& sets);

template <Operation operation>
void tell(Context& context, Words words, Reply& reply) {
  const auto result = operation(context, find_sets(context, words.subspan(1)));
  reply.set(result->size());
  result->for_each([&](std::string_view member) { reply.bulk(member); });
}

template <Operation operation>
void store(Context& context, Words words, Reply& reply) {
  store_result(context, words[1], operation(context, find_sets(context, words.subspan(2))), false,
               reply);
}

void sintercard(Context& context, Words words, Reply& reply) {
  const auto count =
      read_integer_between(words[1], 1, largest_integer, "ERR numkeys should be greater than 0");
  if (static_cast<std::uint64_t>(count) > words.size() - 2)
    return reply.error("ERR Number of keys can't be greater than number of args");
  const auto keys = words.subspan(2, static_cast<std::size_t>(count));
  std::int64_t limit = 0;
  const auto options = words.subspan(2 + keys.size());
  for (std::size_t i = 0; i < options.size(); i += 2) {
    if (!is_word(options[i], "limit") || i + 1 == options.size()) return reply.error(syntax_error);
    limit = read_integer_between(options[i + 1], 0, largest_integer, "ERR LIMIT can't be negative");
  }
  std::int64_t found = 0;
  intersect(context, find_sets(context, keys), [&](std::string_view) { return ++found != limit; });
  reply.integer(found);
}

}  // namespace

CommandRows set_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"sadd", on<Set, sadd>},
      {"scard", on<Set, reply_size>},
      {"sdiff", tell<difference>},
      {"sdiffstore", store<difference>},
      {"sinter", tell<intersection>},
      {"sintercard", sintercard},
      {"sinterstore", store<intersection>},
      {"sismember", on<Set, sismember>},
      {"smembers", on<Set, smembers>},
      {"smismember", on<Set, smismember>},
      {"smove", smove},
      {"spop", spop},
      {"srandmember", srandmember},
      {"srem", on<Set, remove_elements>},
      {"sscan", scan_elements<Set>},
      {"sunion", tell<union_of>},
      {"sunionstore", store<union_of>},
  };
  return rows;
}

}  // namespace sluice::engine
