// Lists: from one to another, from the first of several that has something, and waiting for either.
// What waits is run again when a key was signalled; it is logged as the command that does not wait.
#include <algorithm>
#include <limits>

#include "engine/commands/pop_keys.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {

bool read_pop_keys(Words words, std::size_t place, PopKeys& out, Reply& reply) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 0;
  if (!read_integer_between(words[place], 1, most, count, reply,
                            "ERR numkeys should be greater than 0"))
    return false;
  const auto left = words.size() - place - 1;
  if (static_cast<std::uint64_t>(count) >= left) return fail(reply, syntax_error);
  out.keys = words.subspan(place + 1, static_cast<std::size_t>(count));
  const auto rest = words.subspan(place + 1 + out.keys.size());
  out.end = rest[0];
  if (rest.size() == 1) return true;
  if (rest.size() == 2 || !same_word(rest[1], "count")) return fail(reply, syntax_error);
  if (!read_integer_between(rest[2], 1, most, out.count, reply,
                            "ERR count should be greater than 0"))
    return false;
  return rest.size() == 3 || fail(reply, syntax_error);
}

void wait_for(Context& context, Words keys, std::int64_t timeout_ms, Reply& reply) {
  if (context.in_script()) return reply.null_array();
  context.block({keys.begin(), keys.end()}, timeout_ms);
}

namespace {

bool read_end(std::string_view word, End& end, Reply& reply) {
  if (same_word(word, "left"))
    end = End::left;
  else if (same_word(word, "right"))
    end = End::right;
  else
    return fail(reply, syntax_error);
  return true;
}

std::string_view pop_name(End end) { return end == End::left ? "LPOP" : "RPOP"; }

/// Pops one and logs what it did.
std::string pop_one(Context& context, std::string_view key, List& list, End end) {
  auto item = list.pop(end);
  context.changed();
  drop_if_empty(context, key, list);
  return item;
}

/// Moves one element and replies it. False: nothing was there, nothing was replied.
bool move_one(Context& context, std::string_view from, std::string_view to, End take, End give,
              Reply& reply) {
  List* source = nullptr;
  if (!find_as(context, from, source, reply)) return true;
  if (!source) return false;
  List* target = nullptr;
  if (!find_as(context, to, target, reply)) return true;
  const auto item = source->pop(take);
  if (!target) {
    target = &make<List>(context, to);
    context.signal(to);
  }
  target->push(give, item);
  drop_if_empty(context, from, *source);
  context.changed();
  reply.bulk(item);
  return true;
}

void lmove(Context& context, Words words, Reply& reply) {
  End take{}, give{};
  if (!read_end(words[3], take, reply) || !read_end(words[4], give, reply)) return;
  if (!move_one(context, words[1], words[2], take, give, reply)) reply.null();
}

void rpoplpush(Context& context, Words words, Reply& reply) {
  if (!move_one(context, words[1], words[2], End::right, End::left, reply)) reply.null();
}

/// Either moves one, or waits.
bool move_or_wait(Context& context, Words words, End take, End give, std::string_view timeout,
                  Reply& reply) {
  std::int64_t timeout_ms = 0;
  if (!read_timeout(timeout, timeout_ms, reply)) return false;
  const auto before = context.changes();
  if (move_one(context, words[1], words[2], take, give, reply)) return context.changes() != before;
  if (context.in_script()) return reply.null(), false;
  context.block({std::string{words[1]}}, timeout_ms);
  return false;
}

void blmove(Context& context, Words words, Reply& reply) {
  End take{}, give{};
  if (!read_end(words[3], take, reply) || !read_end(words[4], give, reply)) return;
  if (move_or_wait(context, words, take, give, words[5], reply))
    context.log_instead({"LMOVE", words[1], words[2], words[3], words[4]});
}

void brpoplpush(Context& context, Words words, Reply& reply) {
  if (move_or_wait(context, words, End::right, End::left, words[3], reply))
    context.log_instead({"RPOPLPUSH", words[1], words[2]});
}

template <End end>
void blocking_pop(Context& context, Words words, Reply& reply) {
  std::int64_t timeout_ms = 0;
  if (!read_timeout(words.back(), timeout_ms, reply)) return;
  const auto keys = words.subspan(1, words.size() - 2);
  for (const auto& key : keys) {
    List* list = nullptr;
    if (!find_as(context, key, list, reply)) return;
    if (!list) continue;
    reply.array(2);
    reply.bulk(key);
    reply.bulk(pop_one(context, key, *list, end));
    return context.log_instead({pop_name(end), key});
  }
  wait_for(context, keys, timeout_ms, reply);
}

/// LMPOP: up to `count` of the first list that has something. False: none has, nothing was replied.
bool pop_several(Context& context, const PopKeys& pop, Reply& reply) {
  End end{};
  if (!read_end(pop.end, end, reply)) return true;
  for (const auto& key : pop.keys) {
    List* list = nullptr;
    if (!find_as(context, key, list, reply)) return true;
    if (!list) continue;
    const auto taken = std::min(list->size(), static_cast<std::size_t>(pop.count));
    reply.array(2);
    reply.bulk(key);
    reply.array(taken);
    for (std::size_t i = 0; i < taken; ++i) reply.bulk(list->pop(end));
    context.changed(taken);
    drop_if_empty(context, key, *list);
    context.log_instead({pop_name(end), key, IntegerText{static_cast<std::int64_t>(taken)}});
    return true;
  }
  return false;
}

void lmpop(Context& context, Words words, Reply& reply) {
  PopKeys pop;
  if (read_pop_keys(words, 1, pop, reply) && !pop_several(context, pop, reply)) reply.null_array();
}

void blmpop(Context& context, Words words, Reply& reply) {
  PopKeys pop;
  std::int64_t timeout_ms = 0;
  if (!read_timeout(words[1], timeout_ms, reply) || !read_pop_keys(words, 2, pop, reply)) return;
  if (!pop_several(context, pop, reply)) wait_for(context, pop.keys, timeout_ms, reply);
}

constexpr Handlers::Row rows[] = {
    {"lmove", lmove},
    {"rpoplpush", rpoplpush},
    {"blmove", blmove},
    {"brpoplpush", brpoplpush},
    {"blpop", blocking_pop<End::left>},
    {"brpop", blocking_pop<End::right>},
    {"lmpop", lmpop},
    {"blmpop", blmpop},
};

}  // namespace

void add_list_move_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
