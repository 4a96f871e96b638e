// SINTER, SUNION, SDIFF, what stores them, and SINTERCARD.
#include <algorithm>
#include <limits>

#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// The sets at some keys, null where there is none. False: refused.
bool find_sets(Context& context, Words keys, std::vector<const Set*>& sets, Reply& reply) {
  for (const auto& key : keys) {
    Set* set = nullptr;
    if (!find_as(context, key, set, reply)) return false;
    sets.push_back(set);
  }
  return true;
}

/// Visits the members of the intersection until `visit` says false. Starts from the smallest set.
template <class Visit>
void intersect(std::vector<const Set*> sets, Visit&& visit) {
  if (std::ranges::find(sets, nullptr) != sets.end()) return;
  std::ranges::sort(sets, {}, &Set::size);
  bool more = true;
  sets.front()->for_each([&](std::string_view member) {
    if (more && std::all_of(sets.begin() + 1, sets.end(),
                            [&](const Set* set) { return set->contains(member); }))
      more = visit(member);
  });
}

std::unique_ptr<Set> intersection(const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  intersect(sets, [&](std::string_view member) { return result->add(member), true; });
  return result;
}

std::unique_ptr<Set> union_of(const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  for (const auto* set : sets)
    if (set) set->for_each([&](std::string_view member) { result->add(member); });
  return result;
}

std::unique_ptr<Set> difference(const std::vector<const Set*>& sets) {
  auto result = std::make_unique<Set>();
  if (!sets.front()) return result;
  sets.front()->for_each([&](std::string_view member) {
    const auto has = [&](const Set* set) { return set && set->contains(member); };
    if (std::none_of(sets.begin() + 1, sets.end(), has)) result->add(member);
  });
  return result;
}

using Operation = std::unique_ptr<Set> (*)(const std::vector<const Set*>& sets);

template <Operation operation>
void tell(Context& context, Words words, Reply& reply) {
  std::vector<const Set*> sets;
  if (!find_sets(context, words.subspan(1), sets, reply)) return;
  const auto result = operation(sets);
  reply.set(result->size());
  result->for_each([&](std::string_view member) { reply.bulk(member); });
}

template <Operation operation>
void store(Context& context, Words words, Reply& reply) {
  std::vector<const Set*> sets;
  if (!find_sets(context, words.subspan(2), sets, reply)) return;
  auto result = operation(sets);
  store_result(context, words[1], std::move(result), false, reply);
}

void sintercard(Context& context, Words words, Reply& reply) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 0;
  if (!read_integer_between(words[1], 1, most, count, reply,
                            "ERR numkeys should be greater than 0"))
    return;
  if (static_cast<std::uint64_t>(count) > words.size() - 2)
    return reply.error("ERR Number of keys can't be greater than number of args");
  const auto keys = words.subspan(2, static_cast<std::size_t>(count));
  std::int64_t limit = 0;
  const auto options = words.subspan(2 + keys.size());
  for (std::size_t i = 0; i < options.size(); i += 2) {
    if (!same_word(options[i], "limit") || i + 1 == options.size())
      return reply.error(syntax_error);
    if (!read_integer_between(options[i + 1], 0, most, limit, reply, "ERR LIMIT can't be negative"))
      return;
  }
  std::vector<const Set*> sets;
  if (!find_sets(context, keys, sets, reply)) return;
  std::int64_t found = 0;
  intersect(std::move(sets), [&](std::string_view) { return ++found != limit; });
  reply.integer(found);
}

constexpr Handlers::Row rows[] = {
    {"sinter", tell<intersection>},   {"sunion", tell<union_of>},
    {"sdiff", tell<difference>},      {"sinterstore", store<intersection>},
    {"sunionstore", store<union_of>}, {"sdiffstore", store<difference>},
    {"sintercard", sintercard},
};

}  // namespace

void add_set_algebra_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
