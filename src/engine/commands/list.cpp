// Lists. A command that waits is run again when one of its keys is signalled; it is logged as the
// command that does not wait.

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"

namespace sluice::engine {
namespace {

template <End end, bool only_present>
void push(Context& context, Words words, List* list, Reply& reply) {
  if (!list) {
    if (only_present) return reply.integer(0);
    list = &make<List>(context, words[1]);
    context.signal(words[1]);
  }
  for (const auto& item : words.subspan(2)) list->push(end, item, context.undo());
  context.changed(words.size() - 2);
  reply.count(list->size());
}

std::string_view pop_name(End end) { return end == End::left ? "LPOP" : "RPOP"; }

/// Pops `count` items and replies them. REQUIRES: count <= size.
void pop_items(Context& context, std::string_view key, List& list, End end, std::size_t count,
               Reply& reply) {
  for (std::size_t i = 0; i < count; ++i) reply.bulk(list.pop(end, context.undo()));
  context.changed(count);
  drop_if_empty(context, key, list);
}

template <End end>
void pop(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) refuse_arity(end == End::left ? "lpop" : "rpop");
  auto count = read_pop_count(words);
  auto* list = find_as<List>(context, words[1]);
  if (!list) return words.size() == 3 ? reply.null_array() : reply.null();
  count = std::min(list->size(), count);
  if (words.size() == 3) reply.array(count);
  pop_items(context, words[1], *list, end, count, reply);
}

void lrange(Context& context, Words words, Reply& reply) {
  const auto [start, end] = read_integers(words.subspan(2));
  auto* list = find_as<List>(context, words[1]);
  const auto part = interval_of(start, end, list ? list->size() : 0);
  reply.array(part.size());
  for (auto i = part.first; i < part.last; ++i) reply.bulk((*list)[i]);
}

void lindex(Context&, Words words, List* list, Reply& reply) {
  if (!list) return reply.null();
  const auto place = read_integer(words[2]);
  const auto i = list->index_of(place);
  i ? reply.bulk((*list)[*i]) : reply.null();
}

void lset(Context& context, Words words, List* list, Reply& reply) {
  if (!list) return reply.error(no_such_key);
  const auto place = read_integer(words[2]);
  const auto i = list->index_of(place);
  if (!i) return reply.error("ERR index out of range");
  list->set(*i, words[3], context.undo());
  context.changed();
  reply.ok();
}

void lrem(Context& context, Words words, Reply& reply) {
  const auto count = read_integer(words[2]);
  auto* list = find_as<List>(context, words[1]);
  if (list) context.spend(list->size() / 8);
  const auto removed = list ? list->remove(words[3], count, context.undo()) : 0;
  if (removed > 0) {
    context.changed(removed);
    drop_if_empty(context, words[1], *list);
  }
  reply.count(removed);
}

void ltrim(Context& context, Words words, Reply& reply) {
  const auto [start, end] = read_integers(words.subspan(2));
  auto* list = find_as<List>(context, words[1]);
  if (list) {
    const auto before = list->size();
    const auto kept = interval_of(start, end, before);
    list->trim(kept.first, kept.last, context.undo());
    if (list->size() != before) context.changed(before - list->size());
    drop_if_empty(context, words[1], *list);
  }
  reply.ok();
}

void linsert(Context& context, Words words, Reply& reply) {
  const bool after = is_word(words[2], "after");
  if (!after && !is_word(words[2], "before")) return reply.error(syntax_error);
  auto* list = find_as<List>(context, words[1]);
  if (!list) return reply.integer(0);
  context.spend(list->size() / 8);
  std::size_t i = 0;
  while (i < list->size() && (*list)[i] != words[3]) ++i;
  if (i == list->size()) return reply.integer(-1);
  list->insert(after ? i + 1 : i, words[4], context.undo());
  context.changed();
  reply.count(list->size());
}

struct LposOptions {
  std::int64_t rank = 1;    ///< which match is the first that counts; negative: from the right
  std::int64_t count = -1;  ///< how many; -1: one, not as an array; 0: all
  std::int64_t most = 0;    ///< how many elements are compared; 0: all
};

LposOptions read_options(Words options) {
  LposOptions out;
  for (std::size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) refuse(syntax_error);
    const auto& value = options[i + 1];
    if (is_word(options[i], "rank")) {
      out.rank = read_integer(value);
      if (out.rank == 0)
        refuse(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the "
            "second ... or use "
            "negative to start from the end of the list");
      if (out.rank == std::numeric_limits<std::int64_t>::min())
        refuse(
            "ERR value is out of range, value must between -9223372036854775807 and "
            "9223372036854775807");
    } else if (is_word(options[i], "count")) {
      out.count = read_integer_between(value, 0, largest_integer, "ERR COUNT can't be negative");
    } else if (is_word(options[i], "maxlen")) {
      out.most = read_integer_between(value, 0, largest_integer, "ERR MAXLEN can't be negative");
    } else {
      refuse(syntax_error);
    }
  }
  return out;
}

void lpos(Context& context, Words words, Reply& reply) {
  const auto options = read_options(words.subspan(3));
  auto* list = find_as<List>(context, words[1]);
  const auto size = list ? list->size() : 0;
  const bool backward = options.rank < 0;
  auto skip = (backward ? -options.rank : options.rank) - 1;
  const auto compared =
      options.most == 0 ? size : std::min(size, static_cast<std::size_t>(options.most));
  const auto wanted = options.count == 0
                          ? size
                          : static_cast<std::size_t>(std::max<std::int64_t>(options.count, 1));
  std::vector<std::int64_t> places;
  context.spend(compared / 8);
  for (std::size_t i = 0; i < compared && places.size() < wanted; ++i) {
    const auto place = backward ? size - 1 - i : i;
    if ((*list)[place] == words[2] && skip-- <= 0)
      places.push_back(static_cast<std::int64_t>(place));
  }
  if (options.count < 0) return places.empty() ? reply.null() : reply.integer(places.front());
  reply.array(places.size());
  for (const auto place : places) reply.integer(place);
}

// --- from one list to another, from the first of several, and waiting ---

End read_end(std::string_view word) {
  static constexpr Choice<End> ends[] = {{"left", End::left}, {"right", End::right}};
  End end{};
  if (!choose(word, ends, end)) refuse(syntax_error);
  return end;
}

/// Moves one element and replies it. False: nothing was there, nothing was replied.
bool move_one(Context& context, std::string_view from, std::string_view to, End take, End give,
              Reply& reply) {
  auto* source = find_as<List>(context, from);
  if (!source) return false;
  auto* target = find_as<List>(context, to);
  const auto item = source->pop(take, context.undo());
  if (!target) {
    target = &make<List>(context, to);
    context.signal(to);
  }
  target->push(give, item, context.undo());
  drop_if_empty(context, from, *source);
  context.changed();
  reply.bulk(item);
  return true;
}

void lmove(Context& context, Words words, Reply& reply) {
  const auto take = read_end(words[3]);
  const auto give = read_end(words[4]);
  if (!move_one(context, words[1], words[2], take, give, reply)) reply.null();
}

void rpoplpush(Context& context, Words words, Reply& reply) {
  if (!move_one(context, words[1], words[2], End::right, End::left, reply)) reply.null();
}

/// Either moves one (true), or waits.
bool move_or_wait(Context& context, Words words, End take, End give, std::string_view timeout,
                  Reply& reply) {
  const auto timeout_ms = read_timeout(timeout);
  if (move_one(context, words[1], words[2], take, give, reply)) return true;
  if (!context.may_wait()) return reply.null(), false;
  context.block({std::string{words[1]}}, timeout_ms);
  return false;
}

void blmove(Context& context, Words words, Reply& reply) {
  const auto take = read_end(words[3]);
  const auto give = read_end(words[4]);
  if (move_or_wait(context, words, take, give, words[5], reply))
    context.log_instead({"LMOVE", words[1], words[2], words[3], words[4]});
}

void brpoplpush(Context& context, Words words, Reply& reply) {
  if (move_or_wait(context, words, End::right, End::left, words[3], reply))
    context.log_instead({"RPOPLPUSH", words[1], words[2]});
}

template <End end>
void blocking_pop(Context& context, Words words, Reply& reply) {
  pop_or_wait<List>(context, words, reply, [&](std::string_view key, List& list) {
    reply.array(2);
    reply.bulk(key);
    pop_items(context, key, list, end, 1, reply);
    context.log_instead({pop_name(end), key});
  });
}

bool pop_several(Context& context, const PopKeys& pop, Reply& reply) {
  const auto end = read_end(pop.end);
  return pop_first<List>(context, pop.keys, [&](std::string_view key, List& list) {
    const auto taken = std::min(list.size(), static_cast<std::size_t>(pop.count));
    reply.array(2);
    reply.bulk(key);
    reply.array(taken);
    pop_items(context, key, list, end, taken, reply);
    context.log_instead({pop_name(end), key, IntegerText{static_cast<std::int64_t>(taken)}});
  });
}

}  // namespace

CommandRows list_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"blmove", blmove},
      {"blmpop", pop_several_or_wait<pop_several>},
      {"blpop", blocking_pop<End::left>},
      {"brpop", blocking_pop<End::right>},
      {"brpoplpush", brpoplpush},
      {"lindex", on<List, lindex>},
      {"linsert", linsert},
      {"llen", on<List, reply_size>},
      {"lmove", lmove},
      {"lmpop", pop_at_once<pop_several>},
      {"lpop", pop<End::left>},
      {"lpos", lpos},
      {"lpush", on<List, push<End::left, false>>},
      {"lpushx", on<List, push<End::left, true>>},
      {"lrange", lrange},
      {"lrem", lrem},
      {"lset", on<List, lset>},
      {"ltrim", ltrim},
      {"rpop", pop<End::right>},
      {"rpoplpush", rpoplpush},
      {"rpush", on<List, push<End::right, false>>},
      {"rpushx", on<List, push<End::right, true>>},
  };
  return rows;
}

}  // namespace sluice::engine
