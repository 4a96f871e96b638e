// Sets, one at a time; what combines them is in set_algebra_commands.cpp.
#include <algorithm>

#include "engine/commands/scan.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void sadd(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  if (!set) set = &make<Set>(context, words[1]);
  std::size_t added = 0;
  for (const auto& member : words.subspan(2)) added += set->add(member) ? 1 : 0;
  if (added > 0) context.changed(added);
  reply.integer(static_cast<std::int64_t>(added));
}

void srem(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  std::size_t removed = 0;
  if (set) {
    for (const auto& member : words.subspan(2)) removed += set->erase(member) ? 1 : 0;
    drop_if_empty(context, words[1], *set);
  }
  if (removed > 0) context.changed(removed);
  reply.integer(static_cast<std::int64_t>(removed));
}

void scard(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (find_as(context, words[1], set, reply))
    reply.integer(set ? static_cast<std::int64_t>(set->size()) : 0);
}

void sismember(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (find_as(context, words[1], set, reply)) reply.integer(set && set->contains(words[2]) ? 1 : 0);
}

void smismember(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  reply.array(words.size() - 2);
  for (const auto& member : words.subspan(2)) reply.integer(set && set->contains(member) ? 1 : 0);
}

void smembers(Context& context, Words words, Reply& reply) {
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  reply.set(set ? set->size() : 0);
  if (set) set->for_each([&](std::string_view member) { reply.bulk(member); });
}

void smove(Context& context, Words words, Reply& reply) {
  Set* from = nullptr;
  Set* to = nullptr;
  const auto& member = words[3];
  if (!find_as(context, words[1], from, reply)) return;
  if (!from) return reply.integer(0);
  if (!find_as(context, words[2], to, reply)) return;
  if (from == to) return reply.integer(from->contains(member) ? 1 : 0);
  if (!from->erase(member)) return reply.integer(0);
  drop_if_empty(context, words[1], *from);
  (to ? *to : make<Set>(context, words[2])).add(member);
  context.changed();
  reply.integer(1);
}

/// Up to `count` different members by chance.
std::vector<std::string> pick(const Set& set, std::size_t count, SeededRandom& rng) {
  std::vector<std::string> all;
  all.reserve(set.size());
  set.for_each([&](std::string_view member) { all.emplace_back(member); });
  std::vector<std::string> picked;
  for (const auto place : distinct_indexes(all.size(), std::min(count, all.size()), rng))
    picked.push_back(std::move(all[place]));
  return picked;
}

void remove_picked(Context& context, std::string_view key, Set& set,
                   const std::vector<std::string>& picked) {
  std::vector<std::string_view> log{"SREM", key};
  for (const auto& member : picked) {
    set.erase(member);
    log.push_back(member);
  }
  drop_if_empty(context, key, set);
  if (picked.empty()) return;
  context.changed(picked.size());
  context.log_instead(log);
}

void spop(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) return reply.error(syntax_error);
  const bool several = words.size() == 3;
  std::size_t count = 0;
  if (!read_pop_count(words, count, reply)) return;
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  if (!set) return several ? reply.set(0) : reply.null();
  std::vector<std::string> picked;
  if (several)
    picked = pick(*set, count, context.engine().rng);
  else
    picked.push_back(set->random(context.engine().rng));
  if (several) reply.set(picked.size());
  for (const auto& member : picked) reply.bulk(member);
  remove_picked(context, words[1], *set, picked);
}

void srandmember(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) return reply.error(syntax_error);
  std::int64_t count = 0;
  if (words.size() == 3 && !read_count(words[2], count, reply)) return;
  Set* set = nullptr;
  if (!find_as(context, words[1], set, reply)) return;
  auto& rng = context.engine().rng;
  if (words.size() == 2) return set ? reply.bulk(set->random(rng)) : reply.null();
  if (!set || count == 0) return reply.array(0);
  if (count < 0) {
    reply.array(static_cast<std::size_t>(-count));
    for (; count < 0; ++count) reply.bulk(set->random(rng));
    return;
  }
  const auto picked = pick(*set, static_cast<std::size_t>(count), rng);
  reply.array(picked.size());
  for (const auto& member : picked) reply.bulk(member);
}

void sscan(Context& context, Words words, Reply& reply) {
  ScanOptions options;
  Set* set = nullptr;
  if (!read_cursor(words[2], options.cursor, reply) || !find_as(context, words[1], set, reply))
    return;
  std::vector<std::string> found;
  if (!set) return reply_scan(reply, 0, found);
  if (!read_scan(words, 2, false, options, reply)) return;
  const auto cursor = scan_some(*set, options, [&](std::string_view member) {
    if (options.matches(member)) found.emplace_back(member);
  });
  reply_scan(reply, cursor, found);
}

constexpr Handlers::Row rows[] = {
    {"sadd", sadd},
    {"srem", srem},
    {"scard", scard},
    {"sismember", sismember},
    {"smismember", smismember},
    {"smembers", smembers},
    {"smove", smove},
    {"spop", spop},
    {"srandmember", srandmember},
    {"sscan", sscan},
};

}  // namespace

void add_set_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
