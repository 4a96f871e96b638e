// Lists, except what moves elements between them or waits: list_move_commands.cpp.
#include <algorithm>
#include <limits>

#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

template <End end, bool only_present>
void push(Context& context, Words words, Reply& reply) {
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (!list) {
    if (only_present) return reply.integer(0);
    list = &make<List>(context, words[1]);
    context.signal(words[1]);
  }
  for (const auto& item : words.subspan(2)) list->push(end, item);
  context.changed(words.size() - 2);
  reply.integer(static_cast<std::int64_t>(list->size()));
}

template <End end>
void pop(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) return refuse_arity(reply, end == End::left ? "lpop" : "rpop");
  std::size_t count = 0;
  if (!read_pop_count(words, count, reply)) return;
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (!list) return words.size() == 3 ? reply.null_array() : reply.null();
  const auto taken = std::min(list->size(), count);
  if (words.size() == 3) reply.array(taken);
  for (std::size_t i = 0; i < taken; ++i) reply.bulk(list->pop(end));
  if (taken > 0) context.changed(taken);
  drop_if_empty(context, words[1], *list);
}

void llen(Context& context, Words words, Reply& reply) {
  List* list = nullptr;
  if (find_as(context, words[1], list, reply))
    reply.integer(list ? static_cast<std::int64_t>(list->size()) : 0);
}

void lrange(Context& context, Words words, Reply& reply) {
  std::int64_t start = 0, end = 0;
  if (!read_integer(words[2], start, reply) || !read_integer(words[3], end, reply)) return;
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  const auto part = interval_of(start, end, list ? list->size() : 0);
  reply.array(part.size());
  for (auto i = part.first; i < part.last; ++i) reply.bulk((*list)[i]);
}

void lindex(Context& context, Words words, Reply& reply) {
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (!list) return reply.null();
  std::int64_t place = 0;
  if (!read_integer(words[2], place, reply)) return;
  const auto i = list->index_of(place);
  i ? reply.bulk((*list)[*i]) : reply.null();
}

void lset(Context& context, Words words, Reply& reply) {
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (!list) return reply.error(no_such_key);
  std::int64_t place = 0;
  if (!read_integer(words[2], place, reply)) return;
  const auto i = list->index_of(place);
  if (!i) return reply.error("ERR index out of range");
  list->set(*i, words[3]);
  context.changed();
  reply.ok();
}

void lrem(Context& context, Words words, Reply& reply) {
  std::int64_t count = 0;
  if (!read_integer(words[2], count, reply)) return;
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  const auto removed = list ? list->remove(words[3], count) : 0;
  if (removed > 0) {
    context.changed(removed);
    drop_if_empty(context, words[1], *list);
  }
  reply.integer(static_cast<std::int64_t>(removed));
}

void ltrim(Context& context, Words words, Reply& reply) {
  std::int64_t start = 0, end = 0;
  if (!read_integer(words[2], start, reply) || !read_integer(words[3], end, reply)) return;
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (list) {
    const auto before = list->size();
    const auto kept = interval_of(start, end, before);
    list->trim(kept.first, kept.last);
    if (list->size() != before) context.changed(before - list->size());
    drop_if_empty(context, words[1], *list);
  }
  reply.ok();
}

void linsert(Context& context, Words words, Reply& reply) {
  const bool after = same_word(words[2], "after");
  if (!after && !same_word(words[2], "before")) return reply.error(syntax_error);
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  if (!list) return reply.integer(0);
  std::size_t i = 0;
  while (i < list->size() && (*list)[i] != words[3]) ++i;
  if (i == list->size()) return reply.integer(-1);
  list->insert(after ? i + 1 : i, words[4]);
  context.changed();
  reply.integer(static_cast<std::int64_t>(list->size()));
}

struct LposOptions {
  std::int64_t rank = 1;    ///< which match is the first that counts; negative: from the right
  std::int64_t count = -1;  ///< how many; -1: one, not as an array; 0: all
  std::int64_t most = 0;    ///< how many elements are compared; 0: all
};

bool read_options(Words options, LposOptions& out, Reply& reply) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) return fail(reply, syntax_error);
    const auto& value = options[i + 1];
    if (same_word(options[i], "rank")) {
      if (!read_integer(value, out.rank, reply)) return false;
      if (out.rank == 0)
        return fail(reply,
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the "
                    "second ... or use "
                    "negative to start from the end of the list");
      if (out.rank == std::numeric_limits<std::int64_t>::min())
        return fail(reply,
                    "ERR value is out of range, value must between -9223372036854775807 and "
                    "9223372036854775807");
    } else if (same_word(options[i], "count")) {
      if (!read_integer_between(value, 0, most, out.count, reply, "ERR COUNT can't be negative"))
        return false;
    } else if (same_word(options[i], "maxlen")) {
      if (!read_integer_between(value, 0, most, out.most, reply, "ERR MAXLEN can't be negative"))
        return false;
    } else {
      return fail(reply, syntax_error);
    }
  }
  return true;
}

void lpos(Context& context, Words words, Reply& reply) {
  LposOptions options;
  if (!read_options(words.subspan(3), options, reply)) return;
  List* list = nullptr;
  if (!find_as(context, words[1], list, reply)) return;
  const auto size = list ? list->size() : 0;
  const bool backward = options.rank < 0;
  auto skip = (backward ? -options.rank : options.rank) - 1;
  const auto compared =
      options.most == 0 ? size : std::min(size, static_cast<std::size_t>(options.most));
  const auto wanted = options.count == 0
                          ? size
                          : static_cast<std::size_t>(std::max<std::int64_t>(options.count, 1));
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < compared && places.size() < wanted; ++i) {
    const auto place = backward ? size - 1 - i : i;
    if ((*list)[place] == words[2] && skip-- <= 0)
      places.push_back(static_cast<std::int64_t>(place));
  }
  if (options.count < 0) return places.empty() ? reply.null() : reply.integer(places.front());
  reply.array(places.size());
  for (const auto place : places) reply.integer(place);
}

constexpr Handlers::Row rows[] = {
    {"lpush", push<End::left, false>},
    {"rpush", push<End::right, false>},
    {"lpushx", push<End::left, true>},
    {"rpushx", push<End::right, true>},
    {"lpop", pop<End::left>},
    {"rpop", pop<End::right>},
    {"llen", llen},
    {"lrange", lrange},
    {"lindex", lindex},
    {"lset", lset},
    {"lrem", lrem},
    {"ltrim", ltrim},
    {"linsert", linsert},
    {"lpos", lpos},
};

}  // namespace

void add_list_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
